//! What a scraper asks of the metrics: whatever it is, the answer is one of HTTP's, and the page
//! goes to who asks for `/metrics` by a name of this machine.
#![no_main]
#![allow(dead_code, missing_docs, reason = "the product's own file")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/src/watch/metrics/http.rs"]
mod http;

mod exposition {
    #[derive(Clone, Copy, Debug)]
    pub enum Dialect {
        Prometheus,
        OpenMetrics,
    }

    impl Dialect {
        pub fn content_type(self) -> &'static str {
            "text/plain"
        }
    }
}

const PAGE: &str = "the page";

fn served() -> &'static SocketAddr {
    static SERVED: OnceLock<SocketAddr> = OnceLock::new();
    SERVED.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        http::serve(listener, |_| PAGE.into()).expect("a thread");
        address
    })
}

fn answer_to(request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(served())?;
    let mut answer = Vec::new();
    stream.write_all(request)?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fuzz_target!(|request: &[u8]| {
    // What was not read may have reset the connection.
    let Ok(answer) = answer_to(request) else { return };
    let answer = String::from_utf8(answer).expect("its words are ours");
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    match status {
        None => assert!(answer.is_empty(), "{answer}"),
        Some("200") => {
            let asked = String::from_utf8_lossy(request);
            let is_page = asked.starts_with("GET /metrics") || asked.starts_with("HEAD /metrics");
            assert!(is_page, "{asked}");
        }
        Some(status) => {
            assert!(["400", "404", "405", "421"].contains(&status), "{answer}");
            assert!(!answer.contains(PAGE), "{answer}");
        }
    }
});
