//! As much of HTTP/1.1 (RFC 9112) as a scraper needs: GET of one page, a connection each.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::exposition::Dialect;

/// How long a scraper may take to ask, and to be answered.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 8192;

/// Answers in a thread of its own, until the program ends. `page` gives the page as it is now.
pub fn serve(
    listener: TcpListener,
    page: impl Fn(Dialect) -> String + Send + 'static,
) -> io::Result<()> {
    let answer_all = move || {
        for stream in listener.incoming().flatten() {
            // Whoever has gone away meanwhile asks again.
            let _ = answer(stream, &page);
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(answer_all)?;
    Ok(())
}

fn answer(mut stream: TcpStream, page: &impl Fn(Dialect) -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(&stream)?;
    let (status, content_type, body) = respond(&request, page);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !request.starts_with("HEAD ") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The request's head: nothing that is asked for here has a body.
fn request(stream: &TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    for byte in io::BufReader::new(stream).take(REQUEST_BYTES_MAX).bytes() {
        head.push(byte?);
        if head.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Status, content type and body.
fn respond(
    request: &str,
    page: &impl Fn(Dialect) -> String,
) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; charset=utf-8";
    let mut lines = request.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            let wants = |line: &str| {
                let line = line.to_ascii_lowercase();
                line.starts_with("accept:") && line.contains("application/openmetrics-text")
            };
            let dialect = match lines.any(wants) {
                true => Dialect::OpenMetrics,
                false => Dialect::Prometheus,
            };
            ("200 OK", dialect.content_type(), page(dialect))
        }
        ("GET" | "HEAD", _) => ("404 Not Found", TEXT, "The metrics are at /metrics.\n".into()),
        _ => ("405 Method Not Allowed", TEXT, "Only GET is answered.\n".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(dialect: Dialect) -> String {
        format!("{dialect:?}")
    }

    #[test]
    fn the_format_is_what_was_asked_for() {
        let asked = "GET /metrics HTTP/1.1\r\nHost: a\r\nACCEPT: application/openmetrics-text;q=1";
        let (status, content_type, body) = respond(asked, &page);
        assert_eq!((status, body.as_str()), ("200 OK", "OpenMetrics"));
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        let (_, _, body) = respond("GET /metrics?x=1 HTTP/1.1\r\nAccept: */*", &page);
        assert_eq!(body, "Prometheus");
        assert!(respond("GET / HTTP/1.1", &page).0.starts_with("404"));
        assert!(respond("POST /metrics HTTP/1.1", &page).0.starts_with("405"));
        assert!(respond("", &page).0.starts_with("405"));
    }

    #[test]
    fn who_says_nothing_holds_up_nobody_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, page).unwrap();
        let _silent = TcpStream::connect(address).unwrap();
        let mut asks = TcpStream::connect(address).unwrap();
        asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("Connection: close\r\n\r\nPrometheus"), "{answer}");
    }
}
