//! The live page of a fleet, which polls its server for `data.json`.

use crate::html::{STYLE, UPLOT_LICENCE, UPLOT_SCRIPT, UPLOT_STYLE};
use crate::text::Escaped;

const SCRIPT: &str = include_str!("../assets/live.js");
const LIVE_STYLE: &str = include_str!("../assets/live.css");

/// It connects only to its own server, and loads nothing else.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page: one self-contained HTML document, the same for all fleets.
#[must_use]
pub fn live_page() -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Tensorwright fleet</title>\n\
         <style>{UPLOT_STYLE}</style>\n<style>\n{STYLE}{LIVE_STYLE}</style>\n</head>\n<body>\n\
         <header class=\"page\">\n<p class=\"brand\">Tensorwright <span>fleet</span></p>\n\
         <p class=\"made\" id=\"state\" role=\"status\">asking</p>\n</header>\n\
         <main id=\"main\"><noscript><p>This page is drawn by its script; <a href=\"data.json\">data.json</a> and \
         <a href=\"metrics\">metrics</a> are the same as text.</p></noscript></main>\n\
         <footer><details><summary>Plots are drawn by uPlot</summary><pre>{}</pre></details></footer>\n\
         <script>{UPLOT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        Escaped(UPLOT_LICENCE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        let page = live_page();
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        for part in ["src=", "@import", "url(", "innerHTML", "eval("] {
            assert!(!SCRIPT.contains(part) && !LIVE_STYLE.contains(part), "{part}");
        }
        assert_eq!(SCRIPT.matches("fetch(").count(), 1);
        assert!(SCRIPT.contains("fetch('data.json'"));
    }
}
