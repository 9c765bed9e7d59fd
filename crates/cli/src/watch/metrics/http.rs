//! As much of HTTP/1.1 (RFC 9112) as a scraper needs: GET of one page, a connection each.
//!
//! A silent client does not block others: each connection has a thread; there are few, and if one
//! more comes, the oldest is closed.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::exposition::Dialect;

/// How long a scraper may take to ask, and each time to take more of the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const REQUEST_BYTES_MAX: usize = 8192;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;

/// Answers in threads of its own, until the program ends. `page` gives the page as it is now.
pub fn serve(
    listener: TcpListener,
    page: impl Fn(Dialect) -> String + Send + Sync + 'static,
) -> io::Result<()> {
    let site = Site { address: listener.local_addr()?.ip(), page };
    let site = Arc::new(site);
    let open = Open::default();
    let answer_all = move || {
        for stream in listener.incoming().flatten() {
            // A client that has gone meanwhile asks again.
            let _ = open.answer(stream, &site);
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(answer_all)?;
    Ok(())
}

/// The connections that are open, the oldest first.
#[derive(Clone, Default)]
struct Open(Arc<Mutex<VecDeque<Arc<TcpStream>>>>);

impl Open {
    /// Answers in a thread of its own; the oldest connection may have to make room.
    fn answer<P>(&self, stream: TcpStream, site: &Arc<Site<P>>) -> io::Result<()>
    where
        P: Fn(Dialect) -> String + Send + Sync + 'static,
    {
        let stream = Arc::new(stream);
        let oldest = {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            open.push_back(Arc::clone(&stream));
            if open.len() > CONNECTIONS_MAX { open.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            // Its thread's reading or writing ends at once.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (open, site) = (self.clone(), Arc::clone(site));
        let its = Arc::clone(&stream);
        let answer = move || {
            let _ = site.answer(&its);
            open.forget(&its);
        };
        let spawned = std::thread::Builder::new().name("metrics".into()).spawn(answer);
        spawned.map(drop).inspect_err(|_| self.forget(&stream))
    }

    fn forget(&self, stream: &Arc<TcpStream>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| !Arc::ptr_eq(other, stream));
    }
}

/// What is served, and where.
struct Site<P> {
    address: IpAddr,
    page: P,
}

impl<P: Fn(Dialect) -> String> Site<P> {
    fn answer(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = request(stream)?;
        let (status, content_type, body) = self.respond(&request);
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

    /// Status, content type and body.
    fn respond(&self, request: &str) -> (&'static str, &'static str, String) {
        const TEXT: &str = "text/plain; charset=utf-8";
        let mut lines = request.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (method, target, version) = (word(), word(), word());
        let path = target.split('?').next().unwrap_or_default();
        let fields: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
            .collect();
        let all = |name: &'static str| {
            fields.iter().filter(move |(its, _)| its == name).map(|(_, value)| *value)
        };
        let hosts: Vec<&str> = all("host").collect();
        if !["GET", "HEAD"].contains(&method) {
            return ("405 Method Not Allowed", TEXT, "Only GET is answered.\n".into());
        }
        match hosts.as_slice() {
            [host] if self.is_called(host) => {}
            [] if version == "HTTP/1.0" => {}
            [_] => {
                let text = "Ask for localhost, or for the address that the run names.\n";
                return ("421 Misdirected Request", TEXT, text.into());
            }
            _ => return ("400 Bad Request", TEXT, "One Host is wanted.\n".into()),
        }
        if path != "/metrics" {
            return ("404 Not Found", TEXT, "The metrics are at /metrics.\n".into());
        }
        let wanted = |value: &str| value.to_ascii_lowercase().contains(OPEN_METRICS);
        let dialect = match all("accept").any(wanted) {
            true => Dialect::OpenMetrics,
            false => Dialect::Prometheus,
        };
        ("200 OK", dialect.content_type(), (self.page)(dialect))
    }

    /// Whether a `Host` field may name us. A page of the web whose own name was made to lead here
    /// (DNS rebinding) names itself: only `localhost` and addresses are trusted, of this machine
    /// or what `--metrics` gave. Served on all addresses, it may be any: still no name.
    fn is_called(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, port)) => (address, port),
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let is_port = port.is_empty()
            || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        let is_ours = |address: IpAddr| {
            address.is_loopback() || address == self.address || self.address.is_unspecified()
        };
        is_port && (name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_ours))
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text";

/// The request's head: nothing that is asked for here has a body.
fn request(mut stream: &TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let (mut head, mut end) = ([0; REQUEST_BYTES_MAX], 0);
    while !head[..end].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || end == head.len() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut head[end..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => end += read,
        }
    }
    Ok(String::from_utf8_lossy(&head[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(address: &str) -> Site<impl Fn(Dialect) -> String + Send + Sync + 'static> {
        let page = |dialect: Dialect| format!("{dialect:?}");
        Site { address: address.parse().unwrap(), page }
    }

    fn status(address: &str, request: &str) -> String {
        site(address).respond(request).0.split(' ').next().unwrap().into()
    }

    #[test]
    fn the_format_is_what_was_asked_for() {
        let site = site("127.0.0.1");
        let asked =
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nACCEPT: application/openmetrics-text;q=1";
        let (status, content_type, body) = site.respond(asked);
        assert_eq!((status, body.as_str()), ("200 OK", "OpenMetrics"));
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        let (_, _, body) = site.respond("GET /metrics?x=1 HTTP/1.0\r\nAccept: */*");
        assert_eq!(body, "Prometheus");
        assert!(site.respond("GET / HTTP/1.0").0.starts_with("404"));
        assert!(site.respond("POST /metrics HTTP/1.0").0.starts_with("405"));
        assert!(site.respond("").0.starts_with("405"));
    }

    #[test]
    fn a_page_of_the_web_cannot_ask_by_its_own_name() {
        let asked = |at: &str, host: &str| {
            status(at, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        };
        for host in ["localhost", "LocalHost:9464", "127.0.0.1:9464", "[::1]:9464", "[::1]"] {
            assert_eq!(asked("127.0.0.1", host), "200", "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost:x",
            "[::1]evil.example",
            "[localhost]x",
            "",
        ] {
            assert_eq!(asked("127.0.0.1", host), "421", "{host}");
        }
        assert_eq!(asked("10.0.0.1", "10.0.0.1:9464"), "200");
        assert_eq!(asked("0.0.0.0", "10.0.0.1:9464"), "200");
        assert_eq!(asked("0.0.0.0", "evil.example:9464"), "421");
        assert_eq!(status("127.0.0.1", "GET /metrics HTTP/1.1\r\n\r\n"), "400");
        let twice = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n";
        assert_eq!(status("127.0.0.1", twice), "400");
    }

    fn ask(address: std::net::SocketAddr) -> String {
        let mut asks = TcpStream::connect(address).unwrap();
        asks.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).unwrap();
        answer
    }

    fn served() -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, site("127.0.0.1").page).unwrap();
        address
    }

    /// One after the other they would each be waited for, and be closed by then. On a machine that
    /// is busy they may be, too, now and then.
    #[test]
    fn who_says_nothing_holds_up_nobody() {
        let is_open = |mut stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            let read = stream.read(&mut [0]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        let all_are_open = |_| {
            let address = served();
            let idle: Vec<_> = (0..10).map(|_| TcpStream::connect(address).unwrap()).collect();
            let answer = ask(address);
            assert!(answer.ends_with("Connection: close\r\n\r\nPrometheus"), "{answer}");
            idle.iter().all(is_open)
        };
        assert!((0..10).any(all_are_open), "idle ones are closed when the page is there");
    }

    #[test]
    fn however_many_connect_the_last_is_answered_and_the_first_closed() {
        let address = served();
        let mut idle: Vec<_> =
            (0..4 * CONNECTIONS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(ask(address).ends_with("Prometheus"));
        assert_eq!(idle[0].read(&mut [0]).unwrap(), 0, "the oldest is closed");
    }

    #[test]
    fn a_request_without_an_end_is_not_read_without_an_end() {
        let address = served();
        let mut asks = TcpStream::connect(address).unwrap();
        let sent = asks.write_all(&[b'a'; 2 * REQUEST_BYTES_MAX]);
        let mut answer = Vec::new();
        // What was not read may have reset the connection.
        let read = sent.and_then(|()| asks.read_to_end(&mut answer));
        assert!(read.is_err() || answer.is_empty(), "{answer:?}");
    }
}
