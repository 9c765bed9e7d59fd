//! Colours that everybody can distinguish, in light and in dark.
//!
//! The hues are those of Okabe and Ito ("Color Universal Design", 2008), which stay apart for all
//! common kinds of colour blindness; their brightness is moved until each has a contrast of 3 to 1
//! with the page, as WCAG 2.2 asks of graphics (1.4.11). No figure depends on colour alone: lines
//! have dashes of their own, and rows have names.

/// One look: the page's colours and those of the contenders.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Look {
    /// What is written and drawn on.
    pub page: &'static str,
    /// Boxes on the page.
    pub raised: &'static str,
    /// Text.
    pub ink: &'static str,
    /// Text beside it.
    pub muted: &'static str,
    /// Lines of axes and tables.
    pub line: &'static str,
    /// The band of differences too small to matter.
    pub band: &'static str,
    /// What is void.
    pub void: &'static str,
    /// What holds with a reservation.
    pub warning: &'static str,
    /// What is worth knowing, and links.
    pub note: &'static str,
    /// What is better than the reference, and the ground below it.
    pub better: [&'static str; 2],
    /// What is worse.
    pub worse: [&'static str; 2],
    /// The contenders, in the plan's order.
    pub contenders: [&'static str; COLOURS],
}

/// After so many contenders colours come again, with other dashes.
pub(super) const COLOURS: usize = 7;

/// On white paper.
pub(in super::super) const LIGHT: Look = Look {
    page: "#ffffff",
    raised: "#f5f4f1",
    ink: "#1d1d1f",
    muted: "#5c5c63",
    line: "#dad8d3",
    band: "#eceae5",
    void: "#a8281f",
    warning: "#8a5600",
    note: "#0b5c94",
    better: ["#0b5c94", "#e4eff9"],
    worse: ["#a04000", "#fcecdf"],
    contenders: ["#0072b2", "#d55e00", "#00875f", "#b8578f", "#a87400", "#3585b5", "#6b6b72"],
};

/// In the dark.
pub(in super::super) const DARK: Look = Look {
    page: "#16171a",
    raised: "#1f2125",
    ink: "#ececee",
    muted: "#a3a4ab",
    line: "#36383e",
    band: "#292b30",
    void: "#ff8a7d",
    warning: "#f0b35a",
    note: "#7cc0f0",
    better: ["#84c4f2", "#14283c"],
    worse: ["#ffa366", "#3a2414"],
    contenders: ["#4aa5e0", "#f58442", "#2bbf93", "#e08fbd", "#e0ac35", "#8fd0f7", "#a9a9b2"],
};

/// Lengths of dashes and gaps, in px; with the colours all contenders up to 28 differ.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

impl Look {
    /// The colours as the custom properties that the style sheets use.
    pub fn properties(&self) -> String {
        let text: Vec<String> =
            self.named().iter().map(|(name, value)| format!("--{name}:{value}")).collect();
        text.join(";")
    }

    /// `style` with the colours in place of the properties: many readers of SVG know none.
    pub fn resolved(&self, style: &str) -> String {
        let named = self.named();
        named.iter().fold(style.to_string(), |style, (name, value)| {
            style.replace(&format!("var(--{name})"), value)
        })
    }

    fn named(&self) -> Vec<(String, &'static str)> {
        let own = [
            ("page", self.page),
            ("raised", self.raised),
            ("ink", self.ink),
            ("muted", self.muted),
            ("line", self.line),
            ("band", self.band),
            ("void", self.void),
            ("warning", self.warning),
            ("note", self.note),
            ("better", self.better[0]),
            ("better-ground", self.better[1]),
            ("worse", self.worse[0]),
            ("worse-ground", self.worse[1]),
        ];
        let contenders =
            (0..).zip(self.contenders).map(|(place, value)| (format!("c{place}"), value));
        own.into_iter().map(|(name, value)| (name.into(), value)).chain(contenders).collect()
    }
}

/// The class that gives a contender its colour.
pub(super) fn class(place: usize) -> String {
    format!("c{}", place % COLOURS)
}

/// A contender's dashes: those of neighbours differ, and those of equal colours.
pub(super) fn dashes(place: usize) -> &'static str {
    DASHES[place % DASHES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Relative luminance (WCAG 2.2, "relative luminance").
    fn luminance(colour: &str) -> f64 {
        let part = |from: usize| {
            let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            let share = f64::from(byte) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let [one, other] = [luminance(one), luminance(other)];
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_colour_is_seen_on_its_page() {
        for look in [LIGHT, DARK] {
            for colour in look.contenders {
                for ground in [look.page, look.band] {
                    assert!(contrast(colour, ground) >= 3.0, "{colour} on {ground}");
                }
            }
            for [text, ground] in [look.better, look.worse] {
                assert!(contrast(text, ground) >= 4.5, "{text} on {ground}");
            }
            for text in [look.ink, look.muted, look.void, look.warning, look.note] {
                for ground in [look.page, look.raised] {
                    assert!(contrast(text, ground) >= 4.5, "{text} on {ground}");
                }
            }
        }
    }

    #[test]
    fn contenders_differ_in_colour_or_dashes() {
        let pairs: BTreeSet<_> = (0..28).map(|place| (class(place), dashes(place))).collect();
        assert_eq!(pairs.len(), 28);
        assert!((0..27).all(|place| dashes(place) != dashes(place + 1)));
    }

    #[test]
    fn a_style_can_do_without_properties() {
        let style = LIGHT.resolved("a{fill:var(--ink)} b{stroke:var(--c3)}");
        assert_eq!(style, "a{fill:#1d1d1f} b{stroke:#b8578f}");
        assert!(DARK.properties().contains("--c6:#a9a9b2"));
    }
}
