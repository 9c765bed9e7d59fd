//! One page in Chromium: what is in it, what it looks like, and hands to use it with.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headless_chrome::protocol::cdp::Page::CaptureScreenshotFormatOption::Png;
use headless_chrome::protocol::cdp::types::{Event, Method};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{is_root, wait_for};

/// Commands of the DevTools protocol with only those of their parameters that matter here.
macro_rules! commands {
    ($($command:ident = $name:literal;)*) => {$(
        #[derive(Debug, Serialize)]
        #[serde(transparent)]
        struct $command(Value);

        impl Method for $command {
            const NAME: &'static str = $name;
            type ReturnObject = Value;
        }
    )*};
}
commands! {
    SetMedia = "Emulation.setEmulatedMedia";
    SetSize = "Emulation.setDeviceMetricsOverride";
    Mouse = "Input.dispatchMouseEvent";
    Key = "Input.dispatchKeyEvent";
}

/// How the page is looked at.
#[derive(Clone, Copy)]
pub struct Sight {
    /// Of the window, in px.
    pub width: u32,
    /// The same.
    pub height: u32,
    /// The reader prefers it dark.
    pub dark: bool,
    /// It is on paper.
    pub print: bool,
}

impl Sight {
    pub const DESKTOP: Sight = Sight { width: 1280, height: 900, dark: false, print: false };
    pub const PHONE: Sight = Sight { width: 390, height: 844, dark: false, print: false };
}

/// Where something is in the window, in px.
#[derive(Debug)]
pub struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// A page that is open.
pub struct Page {
    tab: Arc<Tab>,
    complaints: Arc<Mutex<Vec<String>>>,
    sight: Cell<Sight>,
    _browser: Browser,
}

impl Page {
    /// Opens the file.
    pub fn open(path: &Path, sight: Sight) -> Page {
        let options = LaunchOptions::default_builder()
            .path(Some("/usr/bin/chromium".into()))
            .sandbox(!is_root())
            .idle_browser_timeout(Duration::from_secs(600))
            .build()
            .unwrap();
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(600));
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let seen = Cell::new(sight);
        let page =
            Page { tab, complaints: Arc::clone(&complaints), sight: seen, _browser: browser };
        page.tab.enable_log().unwrap().enable_runtime().unwrap();
        let listener = move |event: &Event| {
            let said = match event {
                Event::LogEntryAdded(entry) => format!("{:?}", entry.params.entry.text),
                Event::RuntimeExceptionThrown(thrown) => format!("{:?}", thrown.params),
                Event::RuntimeConsoleAPICalled(call) => format!("{:?}", call.params.args),
                _ => return,
            };
            complaints.lock().unwrap().push(said);
        };
        page.tab.add_event_listener(Arc::new(listener)).unwrap();
        page.see(sight);
        page.tab.navigate_to(&format!("file://{}", path.display())).unwrap();
        page.tab.wait_until_navigated().unwrap();
        page
    }

    /// Looks at it in another way.
    pub fn see(&self, sight: Sight) {
        self.sight.set(sight);
        let Sight { width, height, dark, print } = sight;
        let is_narrow = width < 600;
        let size = json!({
            "width": width, "height": height, "mobile": is_narrow,
            "deviceScaleFactor": if is_narrow { 2 } else { 1 },
        });
        self.tab.call_method(SetSize(size)).unwrap();
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({
            "media": if print { "print" } else { "" },
            "features": [{ "name": "prefers-color-scheme", "value": scheme }],
        });
        self.tab.call_method(SetMedia(media)).unwrap();
    }

    /// All that was written on the console, errors and warnings of the browser's too.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    /// Runs a line of script.
    pub fn run(&self, script: &str) {
        self.value(&format!("void ({script})"));
    }

    fn value(&self, expression: &str) -> Value {
        let stringified = format!("JSON.stringify({expression}) ?? 'null'");
        let object = self.tab.evaluate(&stringified, false).unwrap();
        let text = object.value.unwrap_or_else(|| panic!("{expression}: {:?}", object.description));
        serde_json::from_str(text.as_str().unwrap()).unwrap()
    }

    /// A number of the page's.
    #[track_caller]
    pub fn number(&self, expression: &str) -> f64 {
        let value = self.value(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
    }

    /// A text of the page's.
    #[track_caller]
    pub fn text(&self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).into()
    }

    /// Texts of the page's.
    #[track_caller]
    pub fn texts(&self, expression: &str) -> Vec<String> {
        serde_json::from_value(self.value(expression)).unwrap()
    }

    /// Where the first element is that `selector` finds.
    pub fn frame(&self, selector: &str) -> Frame {
        let box_of = format!("document.querySelector('{selector}').getBoundingClientRect()");
        let frame = self.value(&box_of);
        let side = |name: &str| frame[name].as_f64().unwrap();
        Frame { x: side("x"), y: side("y"), width: side("width"), height: side("height") }
    }

    /// Brings an element to the top of the window, and waits until it stays where it is: what comes
    /// into sight is laid out only then.
    pub fn show(&self, selector: &str) {
        let mut before = f64::NAN;
        wait_for(selector, || {
            let block = "{ block: 'start', behavior: 'instant' }";
            self.run(&format!("document.querySelector('{selector}').scrollIntoView({block})"));
            let now = self.frame(selector).y;
            std::mem::replace(&mut before, now) == now
        });
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), buttons: u32) {
        let button = if buttons > 0 || kind == "mouseReleased" { "left" } else { "none" };
        let event = json!({
            "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1,
        });
        self.tab.call_method(Mouse(event)).unwrap();
    }

    /// Moves the pointer there.
    pub fn point(&self, x: f64, y: f64) {
        self.mouse("mouseMoved", (x, y), 0);
    }

    /// Moves the pointer from one place to another with its button down.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, 0);
        self.mouse("mousePressed", from, 1);
        self.mouse("mouseMoved", ((from.0 + to.0) / 2.0, from.1), 1);
        self.mouse("mouseMoved", to, 1);
        self.mouse("mouseReleased", to, 0);
    }

    /// Presses a key where the focus is.
    pub fn key(&self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.tab.call_method(Key(json!({ "type": kind, "key": key, "text": text }))).unwrap();
        }
    }

    /// The page as PDF.
    pub fn pdf(&self) -> Vec<u8> {
        self.tab.print_to_pdf(None).unwrap()
    }

    /// Opens it once more; how long until it is loaded and painted, in ms.
    pub fn opened_ms(&self) -> f64 {
        self.tab.reload(true, None).unwrap();
        self.tab.wait_until_navigated().unwrap();
        let painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0";
        let loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd";
        wait_for("the page", || self.number(painted) > 0.0 && self.number(loaded) > 0.0);
        self.number(painted).max(self.number(loaded))
    }

    /// A picture of the whole page, where pictures are wanted.
    pub fn screenshot(&self, name: &str) {
        let Ok(folder) = std::env::var("FSVERDICT_SCREENSHOTS") else { return };
        let height = self.number("document.documentElement.scrollHeight").min(12_000.0);
        let before = self.sight.get();
        self.see(Sight { height: height as u32, ..before });
        self.keep(&folder, name);
        self.see(before);
    }

    /// A picture of what is seen of the page with that element on top.
    pub fn screenshot_of(&self, name: &str, selector: &str) {
        let Ok(folder) = std::env::var("FSVERDICT_SCREENSHOTS") else { return };
        self.show(selector);
        self.keep(&folder, name);
    }

    fn keep(&self, folder: &str, name: &str) {
        let picture = self.tab.capture_screenshot(Png, None, None, true).unwrap();
        fs::write(Path::new(folder).join(format!("{name}.png")), picture).unwrap();
    }
}
