//! Pages that a browser shows: one self-contained file each, no script, nothing from the network.
//!
//! Values in, a string out, as everywhere in `output`. Every text goes through `markup`, which
//! escapes it. Charts are SVG of our own: a chart crate would draw pixels of fixed colours and sizes,
//! where these follow the reader's light or dark setting, any width, and can be heard.

mod axis;
mod bars;
mod chart;
mod gantt;
mod history;
mod lines;
mod markup;
mod over_time;
pub mod placement;
pub mod report;
mod rows;
pub mod simulate;
mod strips;

use markup::{El, classed, el, prose};

const STYLE: &str = include_str!("page.css");

/// One page: what every one has around its sections.
struct Page {
    title: String,
    /// What kind of page this is, above its title.
    kind: &'static str,
    /// The page in a sentence or two.
    lead: String,
    /// Figures at a glance.
    tiles: Vec<El>,
    sections: Vec<Section>,
    /// Where it came from, and how to make it anew.
    foot: String,
}

struct Section {
    id: &'static str,
    title: String,
    inside: Vec<El>,
}

impl Section {
    fn new(id: &'static str, title: impl Into<String>) -> Section {
        Section { id, title: title.into(), inside: Vec::new() }
    }

    fn says(self, text: impl Into<String>) -> Section {
        self.put(prose("p", &text.into()))
    }

    fn put(mut self, inside: El) -> Section {
        self.inside.push(inside);
        self
    }

    fn all(mut self, inside: impl IntoIterator<Item = El>) -> Section {
        self.inside.extend(inside);
        self
    }
}

/// What is said where there is nothing to draw yet.
fn nothing(text: &str) -> El {
    classed("p", "none").text(text)
}

/// A figure at a glance.
struct Tile {
    class: &'static str,
    name: &'static str,
    big: El,
    more: Vec<El>,
}

impl Tile {
    fn write(self) -> El {
        let more = self.more.into_iter().map(|more| classed("div", "more").put(more));
        let dd = el("dd").put(classed("div", "big").put(self.big)).all(more);
        classed("div", self.class).put(el("dt").text(self.name)).put(dd)
    }
}

/// A number that programs can read from the page too: shown in one way, exact in the other.
fn figure(id: &str, exact: impl ToString, shown: impl Into<String>) -> El {
    el("data").at("id", id).at("value", exact).text(shown)
}

impl Page {
    fn write(self) -> String {
        let head = el("head")
            .put(el("meta").at("charset", "utf-8"))
            .put(
                el("meta")
                    .at("name", "viewport")
                    .at("content", "width=device-width, initial-scale=1"),
            )
            .put(el("meta").at("name", "color-scheme").at("content", "light dark"))
            // An empty picture: browsers ask the server for one otherwise.
            .put(el("link").at("rel", "icon").at("href", "data:,"))
            .put(el("title").text(format!("{}: {}", self.title, self.kind)))
            .put(el("style").style(STYLE));
        let links = self.sections.iter().map(|section| {
            let link = el("a").at("href", format!("#{}", section.id));
            el("li").put(link.text(section.title.clone()))
        });
        let nav = el("nav").at("aria-label", "On this page").put(el("ul").all(links));
        let header = el("header")
            .put(classed("p", "eyebrow").text(self.kind))
            .put(el("h1").text(self.title))
            .put(classed("p", "lead").text(self.lead));
        let header = match self.tiles.is_empty() {
            true => header,
            false => header.put(classed("dl", "tiles").all(self.tiles)),
        };
        let section = |section: Section| {
            let name = format!("{}-h", section.id);
            el("section")
                .at("id", section.id)
                .at("aria-labelledby", &name)
                .put(el("h2").at("id", name).text(section.title))
                .all(section.inside)
        };
        let main = el("main").at("id", "main").all(self.sections.into_iter().map(section));
        let skip = classed("a", "skip").at("href", "#main").text("Skip to the charts");
        let body = el("body")
            .put(skip)
            .put(textures())
            .put(header)
            .put(nav)
            .put(main)
            .put(el("footer").put(prose("p", &self.foot)));
        let mut out = String::from("<!DOCTYPE html>\n");
        el("html")
            .at("lang", "en")
            .at("xmlns", "http://www.w3.org/1999/xhtml")
            .put(head)
            .put(body)
            .write(&mut out);
        out.push('\n');
        out
    }
}

/// Hatchings: what colours tell apart, they tell apart for everybody.
fn textures() -> El {
    let hatch = |id: &str, colour: &str| {
        let square = || el("rect").at("width", 6).at("height", 6);
        let paper = square().at("style", "fill:var(--paper)");
        let tint = square().at("style", format!("fill:{colour};fill-opacity:.3"));
        let lines = el("path").at("d", "M0 0H6V2H0Z").at("style", format!("fill:{colour}"));
        el("pattern")
            .at("id", id)
            .at("width", 6)
            .at("height", 6)
            .at("patternUnits", "userSpaceOnUse")
            .at("patternTransform", "rotate(45)")
            .put(paper)
            .put(tint)
            .put(lines)
    };
    let defs = el("defs")
        .put(hatch("hatch1", "var(--s1)"))
        .put(hatch("hatch2", "var(--s2)"))
        .put(hatch("hatchbad", "var(--bad)"));
    classed("svg", "defs").at("width", 0).at("height", 0).at("aria-hidden", "true").put(defs)
}
