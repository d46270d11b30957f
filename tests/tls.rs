//! Whole nodes with TLS: both sides, client certificates, new certificates, and peers
//! that do something else.

mod support;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use support::node::{Node, TOKEN, command};
use support::tls::{Authority, Issued, Valid};
use support::{TempFolder, free_port};

/// No step takes longer, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(20);

type Secured = StreamOwned<ClientConnection, TcpStream>;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn pem(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
}

/// Files and addresses of a test, and a node on them.
struct Setting {
    folder: TempFolder,
    authority: Authority,
    server: Issued,
    thrift: String,
    http: String,
}

impl Setting {
    fn new() -> Setting {
        let folder = TempFolder::new("tls");
        let authority = Authority::create(folder.path(), "authority");
        let server = authority.issue("server", "/CN=node", Valid::Now);
        let address = || format!("127.0.0.1:{}", free_port());
        Setting { authority, server, folder, thrift: address(), http: address() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A node with TLS beside the plain ports, and further arguments.
    fn node(&self, more: &[&str]) -> Node {
        let data = self.data();
        let mut all = vec!["--data", text(&data), "--thrift-tls", &self.thrift];
        all.extend(["--http-tls", &self.http, "--log-level", "debug"]);
        if !more.contains(&"--tls-cert-file") {
            all.extend(["--tls-cert-file", text(&self.server.cert)]);
            all.extend(["--tls-key-file", text(&self.server.key)]);
        }
        all.extend(more);
        let node = Node::start(&all);
        node.run(&["type", "add", "order"]);
        node
    }

    /// What a client trusts, and shows.
    fn client(&self, own: Option<&Issued>) -> Arc<ClientConfig> {
        client_of(&self.authority, own, rustls::ALL_VERSIONS)
    }

    /// A client command over TLS.
    fn run(&self, own: Option<&Issued>, arguments: &[&str]) -> Output {
        let mut command = command(arguments);
        command
            .env("IDGEN_URL", format!("https://{}", self.http))
            .env("IDGEN_ADMIN_TOKEN", TOKEN)
            .env("IDGEN_CA_FILE", &self.authority.cert);
        if let Some(own) = own {
            command.env("IDGEN_CERT", &own.cert).env("IDGEN_KEY", &own.key);
        }
        command.output().unwrap()
    }
}

fn client_of(
    authority: &Authority,
    own: Option<&Issued>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(pem(&authority.cert));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_file(&own.key).unwrap();
            config.with_client_auth_cert(pem(&own.cert), key).unwrap()
        }
    })
}

fn tcp(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A connection after its handshake.
fn connect(addr: &str, config: Arc<ClientConfig>) -> io::Result<Secured> {
    let mut stream = tcp(addr);
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(config, name).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// A call of nextId for `order`, framed and binary.
fn call() -> Vec<u8> {
    let mut message = vec![0x80, 1, 0, 1];
    for text in ["nextId", ""] {
        message.extend((text.len() as u32).to_be_bytes());
        message.extend(text.bytes());
    }
    // The empty text was room for the number of the call.
    message.extend([11, 0, 1, 0, 0, 0, 5]);
    message.extend(b"order\0");
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn answer(stream: &mut impl Read) -> io::Result<i64> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message)?;
    // A reply, the name, the number, and a value of the kind i64 in field 0.
    assert_eq!((message[3], &message[18..21]), (2, &[10, 0, 0][..]), "{message:?}");
    Ok(i64::from_be_bytes(message[21..29].try_into().unwrap()))
}

fn next_id(stream: &mut (impl Read + Write)) -> io::Result<i64> {
    stream.write_all(&call())?;
    answer(stream)
}

/// All that comes until the end; an error counts as the end.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

fn shown(stream: &Secured) -> CertificateDer<'static> {
    stream.conn.peer_certificates().unwrap()[0].clone()
}

fn failures(node: &Node, side: &str, reason: &str) -> f64 {
    let labels = format!("{{reason=\"{reason}\",side=\"{side}\"}}");
    node.metric(&format!("idgen_tls_handshake_failures_total{labels}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ids_come_over_tls_and_beside_it() {
    let setting = Setting::new();
    let node = setting.node(&[]);
    let mut plain = tcp(&node.thrift);
    let mut last = next_id(&mut plain).unwrap();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let config = client_of(&setting.authority, None, &[version]);
        let mut secured = connect(&setting.thrift, config).unwrap();
        for _ in 0..3 {
            let id = next_id(&mut secured).unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        // A pipeline longer than a record, and than what is held for a peer.
        let calls = 2_000;
        let mut writer = secured.sock.try_clone().unwrap();
        secured.conn.set_buffer_limit(None);
        secured.conn.writer().write_all(&call().repeat(calls)).unwrap();
        let all = secured.conn.wants_write().then(|| {
            let mut bytes = Vec::new();
            while secured.conn.wants_write() {
                secured.conn.write_tls(&mut bytes).unwrap();
            }
            bytes
        });
        let sender = std::thread::spawn(move || writer.write_all(&all.unwrap()).unwrap());
        for _ in 0..calls {
            let id = answer(&mut secured).unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        sender.join().unwrap();
    }
    assert!(next_id(&mut plain).unwrap() > last);
    assert_eq!(node.metric("idgen_tls_handshakes_total{side=\"thrift\"}"), 2.0);
    assert!(node.metric("idgen_tls_certificate_expires_seconds{certificate=\"server\"}") > 1.7e9);

    let old = setting.node_of_tls13();
    let config = client_of(&setting.authority, None, &[&rustls::version::TLS12]);
    let error = connect(&old.1, config).unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    assert_eq!(failures(&old.0, "thrift", "incompatible"), 1.0);
}

impl Setting {
    /// A second node that speaks nothing older than 1.3, and where.
    fn node_of_tls13(&self) -> (Node, String) {
        let other = format!("127.0.0.1:{}", free_port());
        let data = self.folder.path().join("other");
        let node = Node::start(&[
            "--data",
            text(&data),
            "--thrift-tls",
            &other,
            "--tls-min-version",
            "1.3",
            "--tls-cert-file",
            text(&self.server.cert),
            "--tls-key-file",
            text(&self.server.key),
        ]);
        (node, other)
    }
}

#[test]
fn who_shows_no_good_certificate_is_not_let_in() {
    let setting = Setting::new();
    let ca = text(&setting.authority.cert).to_owned();
    let node = setting.node(&[
        "--tls-client-ca-file",
        &ca,
        "--thrift-tls-client-auth",
        "required",
        "--http-tls-client-auth",
        "optional",
    ]);
    let good = setting.authority.issue("good", "/O=Shop/CN=orders", Valid::Now);
    let expired = setting.authority.issue("expired", "/CN=yesterday", Valid::Once);
    let other = Authority::create(setting.folder.path(), "others");
    let stranger = other.issue("stranger", "/CN=stranger", Valid::Now);
    // The same name, another key.
    fs::create_dir(setting.folder.path().join("copy")).unwrap();
    let copy = Authority::create(&setting.folder.path().join("copy"), "authority");
    let forged = copy.issue("forged", "/CN=orders", Valid::Now);

    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let config = |own| client_of(&setting.authority, own, &[version]);
        let mut let_in = connect(&setting.thrift, config(Some(&good))).unwrap();
        next_id(&mut let_in).unwrap();
        for (own, alert) in [
            (None, "CertificateRequired"),
            (Some(&expired), "CertificateExpired"),
            (Some(&stranger), "UnknownCA"),
            (Some(&forged), ""),
        ] {
            // With 1.3 the client believes in the connection until it reads.
            let result = connect(&setting.thrift, config(own));
            let error = result.and_then(|mut stream| next_id(&mut stream)).unwrap_err();
            let told = error.to_string();
            let older = version.version == rustls::ProtocolVersion::TLSv1_2;
            assert!(told.contains("fatal alert"), "{told}");
            assert!(told.contains(alert) || (older && own.is_none()), "{alert}: {told}");
        }
        // A connection that was let in does not suffer.
        next_id(&mut let_in).unwrap();
    }
    assert_eq!(failures(&node, "thrift", "no_certificate"), 2.0);
    assert_eq!(failures(&node, "thrift", "expired"), 2.0);
    assert_eq!(failures(&node, "thrift", "unknown_authority"), 4.0);
    let log = node.log();
    for (reason, subject) in
        [("no_certificate", ""), ("expired", "CN=yesterday"), ("unknown_authority", "CN=stranger")]
    {
        let found = log.lines().find(|line| {
            line.contains("TLS client refused")
                && line.contains(&format!("reason=\"{reason}\""))
                && line.contains(&format!("subject=\"{subject}\""))
        });
        let line = found.unwrap_or_else(|| panic!("{reason} of {subject:?} is not in\n{log}"));
        assert!(line.contains("WARN") && line.contains("peer=127.0.0.1:"), "{line}");
    }
    assert!(log.lines().any(|l| l.contains("TLS connection") && l.contains("caller=\"orders\"")));

    // Optional: without one, and with a good one; not with a bad one.
    for (own, code) in [(None, 0), (Some(&good), 0), (Some(&stranger), 4)] {
        let output = setting.run(own, &["get", "order"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
    assert_eq!(failures(&node, "http", "unknown_authority"), 1.0);
    for own in [None, Some(&good)] {
        let bench = ["bench", "--tls", "--node", &setting.thrift, "--type", "order"];
        let bench = [&bench[..], &["--seconds", "1", "--connections", "2"]].concat();
        let output = setting.run(own, &bench);
        assert_eq!(output.status.success(), own.is_some(), "{}", stderr(&output));
    }
}

/// The files of `issued` as Kubernetes mounts a secret: links to a folder that a link
/// names, which is swapped.
fn publish(folder: &Path, version: &str, issued: &Issued) {
    let at = folder.join(version);
    fs::create_dir(&at).unwrap();
    fs::copy(&issued.cert, at.join("tls.crt")).unwrap();
    fs::copy(&issued.key, at.join("tls.key")).unwrap();
    symlink(version, folder.join("next")).unwrap();
    fs::rename(folder.join("next"), folder.join("current")).unwrap();
}

fn mounted(folder: &Path) -> (PathBuf, PathBuf) {
    fs::create_dir(folder).unwrap();
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("current/{name}"), folder.join(name)).unwrap();
    }
    (folder.join("tls.crt"), folder.join("tls.key"))
}

#[test]
fn new_certificates_are_taken_into_use_and_broken_ones_are_not() {
    let setting = Setting::new();
    let mount = setting.folder.path().join("mount");
    let (cert, key) = mounted(&mount);
    publish(&mount, "v1", &setting.server);
    let files = ["--tls-cert-file", text(&cert), "--tls-key-file", text(&key)];
    let mut node = setting.node(&[&files[..], &["--tls-reload-interval-ms", "100"]].concat());
    let first = pem(&setting.server.cert)[0].clone();
    let mut old = connect(&setting.thrift, setting.client(None)).unwrap();
    next_id(&mut old).unwrap();
    assert_eq!(shown(&old), first);

    let second = setting.authority.issue("second", "/CN=second", Valid::Now);
    publish(&mount, "v2", &second);
    let reloaded = |node: &Node| node.metric("idgen_tls_reloads_total{result=\"ok\"}") == 1.0;
    node.wait_for("the new certificate", PATIENCE, reloaded);
    let new = connect(&setting.thrift, setting.client(None)).unwrap();
    assert_eq!(shown(&new), pem(&second.cert)[0]);
    let web = connect(&setting.http, setting.client(None)).unwrap();
    assert_eq!(shown(&web), pem(&second.cert)[0]);
    next_id(&mut old).expect("open connections go on");

    // A key that does not fit, an expired certificate, and nonsense.
    let foreign = Issued { cert: second.cert.clone(), key: setting.server.key.clone() };
    let expired = setting.authority.issue("expired", "/CN=gone", Valid::Once);
    let nonsense = Issued { cert: second.key.clone(), key: second.key.clone() };
    for (at, (issued, why)) in [
        (foreign, "the key is not that of"),
        (expired, "expired at 2020-12-31T23:59:59Z"),
        (nonsense, "it holds no certificate in PEM"),
    ]
    .into_iter()
    .enumerate()
    {
        publish(&mount, &format!("broken-{at}"), &issued);
        node.wait_for(why, PATIENCE, |node| node.log().contains(why));
        assert_eq!(node.metric("idgen_tls_reload_failed"), 1.0);
        let still = connect(&setting.thrift, setting.client(None)).unwrap();
        assert_eq!(shown(&still), pem(&second.cert)[0]);
    }
    assert_eq!(node.metric("idgen_tls_reloads_total{result=\"failed\"}"), 3.0);

    publish(&mount, "v3", &setting.server);
    node.wait_for("a good one", PATIENCE, |node| node.metric("idgen_tls_reload_failed") == 0.0);
    let again = connect(&setting.thrift, setting.client(None)).unwrap();
    assert_eq!(shown(&again), first);
    next_id(&mut old).expect("open connections go on");
}

#[test]
fn sighup_reads_the_files_at_once() {
    let setting = Setting::new();
    let mut node = setting.node(&["--tls-reload-interval-ms", "3600000"]);
    let second = setting.authority.issue("second", "/CN=second", Valid::Now);
    for (from, to) in [(&second.cert, &setting.server.cert), (&second.key, &setting.server.key)] {
        fs::copy(from, to).unwrap();
    }
    node.signal("HUP");
    let reloaded = |node: &Node| node.metric("idgen_tls_reloads_total{result=\"ok\"}") == 1.0;
    node.wait_for("the new certificate", PATIENCE, reloaded);
    let new = connect(&setting.thrift, setting.client(None)).unwrap();
    assert_eq!(shown(&new), pem(&second.cert)[0]);
    node.signal("HUP");
    node.wait_for("an answer", PATIENCE, |node| node.log().contains("files have not changed"));
    assert_eq!(node.metric("idgen_tls_reloads_total"), 1.0);
    assert!(node.stop().success());
}

/// Without TLS, SIGHUP must not end a node.
#[test]
fn sighup_without_tls_is_answered() {
    let folder = TempFolder::new("hup");
    let mut node = Node::start(&["--data", text(folder.path())]);
    node.signal("HUP");
    node.wait_for("an answer", PATIENCE, |node| {
        node.log().contains("the settings are those in use")
    });
    assert!(node.stop().success());
}

#[test]
fn other_protocols_end_at_once_and_cost_one_connection() {
    let setting = Setting::new();
    let node = setting.node(&[]);
    let mut good = connect(&setting.thrift, setting.client(None)).unwrap();

    // Thrift without TLS at the port with it.
    let mut plain = tcp(&setting.thrift);
    plain.write_all(&call()).unwrap();
    assert_eq!(plain.read(&mut [0; 1]).unwrap(), 0, "an end, and no reset");
    assert_eq!(failures(&node, "thrift", "not_tls"), 1.0);

    // HTTP at the port of HTTPS.
    let mut plain = tcp(&setting.http);
    plain.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let told = String::from_utf8(rest(&mut plain)).unwrap();
    assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("use https://"), "{told}");
    assert_eq!(failures(&node, "http", "not_tls"), 1.0);

    // TLS at the ports without it.
    let http = node.url.trim_start_matches("http://");
    for addr in [node.thrift.as_str(), http] {
        let error = connect(addr, setting.client(None)).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{addr}: it ended by itself");
    }
    assert_eq!(node.metric("idgen_thrift_malformed_total{kind=\"tls\"}"), 1.0);

    // The beginning of a handshake, and then something else.
    let mut broken = tcp(&setting.thrift);
    broken.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    rest(&mut broken);
    assert_eq!(failures(&node, "thrift", "protocol"), 1.0);

    // Nothing at all.
    drop(tcp(&setting.thrift));
    let mut node = node;
    node.wait_for("the end of it", PATIENCE, |node| failures(node, "thrift", "closed") == 1.0);

    // A client that does not trust the node.
    let other = Authority::create(setting.folder.path(), "others");
    let config = client_of(&other, None, rustls::ALL_VERSIONS);
    assert!(connect(&setting.thrift, config).is_err());
    node.wait_for("its alert", PATIENCE, |node| failures(node, "thrift", "alert") == 1.0);

    next_id(&mut good).unwrap();
}

#[test]
fn a_slow_handshake_ends_and_counts_as_a_connection() {
    let setting = Setting::new();
    let limits = ["--tls-handshake-timeout-ms", "1000", "--thrift-max-connections", "3"];
    let mut node = setting.node(&limits);
    let mut good = connect(&setting.thrift, setting.client(None)).unwrap();
    next_id(&mut good).unwrap();

    // One says nothing, one stops in the middle.
    let mut silent = tcp(&setting.thrift);
    let mut slow = tcp(&setting.thrift);
    slow.write_all(&[0x16, 3, 1, 0, 200, 1]).unwrap();
    // Both count: there is no room for another one.
    let mut more = tcp(&setting.thrift);
    assert!(rest(&mut more).is_empty());
    assert_eq!(node.metric("idgen_thrift_connections_refused_total{reason=\"limit\"}"), 1.0);
    next_id(&mut good).unwrap();

    assert!(rest(&mut silent).is_empty());
    rest(&mut slow);
    node.wait_for("both", PATIENCE, |node| failures(node, "thrift", "timeout") == 2.0);
    let again = connect(&setting.thrift, setting.client(None));
    next_id(&mut again.unwrap()).unwrap();
}

/// What the kernel has received at a stop is answered, with TLS as without.
#[test]
fn a_request_that_arrived_before_the_stop_is_answered() {
    let setting = Setting::new();
    let mut node = setting.node(&[]);
    let mut client = connect(&setting.thrift, setting.client(None)).unwrap();
    let before = next_id(&mut client).unwrap();
    node.signal("STOP");
    client.write_all(&call()).unwrap();
    client.write_all(&call()).unwrap();
    node.signal("TERM");
    node.signal("CONT");
    assert!(answer(&mut client).unwrap() > before);
    assert!(answer(&mut client).unwrap() > before);
    // TLS is ended as it should be, not cut off.
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    node.wait_for("the end", PATIENCE, |node| node.log().contains("stopped"));
}

/// The answer of a Thrift call as bytes, an id or a refusal.
fn said(stream: &mut (impl Read + Write)) -> String {
    stream.write_all(&call()).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).unwrap();
    String::from_utf8_lossy(&message).into_owned()
}

#[test]
fn a_certificate_says_who_calls() {
    let setting = Setting::new();
    let [known, other] = ["orders", "invoices"]
        .map(|name| setting.authority.issue(name, &format!("/CN={name}"), Valid::Now));
    let compat = format!("127.0.0.1:{}", free_port());
    let ca = text(&setting.authority.cert);
    let node = setting.node(&[
        "--tls-client-ca-file",
        ca,
        "--thrift-tls-client-auth",
        "optional",
        "--http-tls-client-auth",
        "optional",
        "--clients-tokens",
        "required",
        "--compat-leaf",
        "on",
        "--compat-tls",
        &compat,
    ]);
    let certificate = ["--certificate", "--role", "issue", "--type", "order"];
    node.run(&[&["token", "add", "orders"], &certificate[..]].concat());
    // A token with a secret is no certificate, whatever its name.
    node.run(&["token", "add", "invoices", "--role", "issue", "--type", "order"]);

    let mut stream = connect(&setting.thrift, setting.client(Some(&known))).unwrap();
    assert!(next_id(&mut stream).unwrap() > 0);
    for own in [Some(&other), None] {
        let mut stream = connect(&setting.thrift, setting.client(own)).unwrap();
        let refused = said(&mut stream);
        assert!(refused.contains("PERMISSION_DENIED"), "{refused}");
    }
    let leaf = |own: Option<&Issued>| {
        let mut stream = connect(&compat, setting.client(own)).unwrap();
        let request = "GET /api/segment/get/order HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        String::from_utf8(rest(&mut stream)).unwrap()
    };
    assert!(leaf(Some(&known)).starts_with("HTTP/1.1 200 "));
    for own in [Some(&other), None] {
        let refused = leaf(own);
        assert!(refused.starts_with("HTTP/1.1 500 ") && refused.contains("token"), "{refused}");
    }
    // Its calls count, and its end ends it.
    assert_eq!(node.metric("idgen_caller_ids_total{caller=\"orders\"}"), 2.0);
    node.run(&["token", "revoke", "orders"]);
    let refused = said(&mut stream);
    assert!(refused.contains("PERMISSION_DENIED"), "{refused}");
}

/// An answer over HTTPS: status, the line of the cookie, body.
fn https(
    setting: &Setting,
    method: &str,
    path: &str,
    body: &str,
) -> (String, Option<String>, String) {
    let mut stream = connect(&setting.http, setting.client(None)).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let answer = String::from_utf8(rest(&mut stream)).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    (head.lines().next().unwrap().to_owned(), cookie.map(str::to_owned), body.to_owned())
}

#[test]
fn the_page_the_api_and_the_commands_work_over_https() {
    let setting = Setting::new();
    let node = setting.node(&[]);
    for path in ["/healthz", "/readyz", "/metrics", "/"] {
        let (status, _, body) = https(&setting, "GET", path, "");
        assert_eq!(status, "HTTP/1.1 200 OK", "{path}: {body}");
    }

    // The set-up link is that of HTTPS, and so is the cookie.
    let said = node.said();
    let link = said.lines().find_map(|l| l.trim().strip_prefix("set-up  ")).unwrap();
    let secret = link.strip_prefix(&format!("https://{}/setup#", setting.http)).unwrap();
    let body = format!(r#"{{"token":"{secret}","name":"root","password":"correct horse"}}"#);
    let (status, cookie, body) = https(&setting, "POST", "/api/v1/setup", &body);
    assert_eq!(status, "HTTP/1.1 201 Created", "{body}");
    let cookie = cookie.unwrap();
    assert!(cookie.starts_with("__Host-idgen_session="), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    // Without TLS, a browser would not keep that one.
    let login = r#"{"name":"root","password":"correct horse"}"#;
    let plain = ureq::post(format!("{}/api/v1/session", node.url))
        .header("Content-Type", "application/json")
        .send(login)
        .unwrap();
    let cookie = plain.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("idgen_session=") && !cookie.contains("Secure"), "{cookie}");

    let id = setting.run(None, &["get", "order"]);
    assert!(id.status.success(), "{}", stderr(&id));
    assert!(String::from_utf8(id.stdout).unwrap().trim().parse::<i64>().is_ok());
    let verify = ["verify", "--tls", "--node", &setting.thrift, "--type", "order"];
    let verify = [&verify[..], &["--seconds", "1", "--clients", "2", "--count", "3"]].concat();
    let verified = setting.run(None, &verify);
    assert!(verified.status.success(), "{}", stderr(&verified));

    // Nobody is trusted by mistake: not without the authority, and not by another name.
    let url = format!("https://{}", setting.http);
    let args = ["get", "order", "--url", &url];
    let unknown = command(&args).env("IDGEN_ADMIN_TOKEN", TOKEN).output().unwrap();
    let known = ["get", "order", "--url", &url.replace("127.0.0.1", "127.0.0.2")];
    let named = setting.run(None, &known);
    for (output, why) in [(&unknown, "certificate"), (&named, "127.0.0.2")] {
        assert!(!output.status.success());
        assert!(stderr(output).contains(why), "{}", stderr(output));
    }
    let half = setting.run(None, &["get", "order", "--cert", text(&setting.server.cert)]);
    assert_eq!(half.status.code(), Some(2), "{}", stderr(&half));
}

#[test]
fn a_node_can_speak_tls_only() {
    let setting = Setting::new();
    let data = setting.data();
    let mut child = command(&["serve", "--thrift", "off", "--http", "off"])
        .args(["--thrift-tls", &setting.thrift, "--http-tls", &setting.http])
        .args(["--data", text(&data), "--tls-cert-file", text(&setting.server.cert)])
        .args(["--tls-key-file", text(&setting.server.key)])
        .env("IDGEN_ADMIN_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let banner: Vec<String> = lines.take_while(|line| !line.contains("The first id")).collect();
    let banner = banner.join("\n");
    let added = setting.run(None, &["type", "add", "order"]);
    let id = connect(&setting.thrift, setting.client(None)).and_then(|mut s| next_id(&mut s));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(banner.contains(&format!("  thrift  {}, with TLS", setting.thrift)), "{banner}");
    assert!(banner.contains(&format!("  https   https://{}", setting.http)), "{banner}");
    assert!(!banner.contains("http://"), "{banner}");
    assert!(added.status.success(), "{}", stderr(&added));
    assert!(id.is_ok(), "{id:?}");
}

#[test]
fn files_that_cannot_be_used_stop_the_start_and_are_named() {
    let setting = Setting::new();
    let Issued { cert, key } = &setting.server;
    let expired = setting.authority.issue("expired", "/CN=gone", Valid::Once);
    let other = setting.authority.issue("other", "/CN=other", Valid::Now);
    let nothing = setting.folder.path().join("nothing");
    fs::write(&nothing, "s3cr3t content").unwrap();
    let refused = |cert: &Path, key: &Path, ca: Option<&Path>| {
        let data = setting.data();
        let mut command = command(&["serve", "--thrift-tls", &setting.thrift, "--thrift", "off"]);
        command.args(["--http", "off", "--http-tls", &setting.http, "--data", text(&data)]);
        command.args(["--tls-cert-file", text(cert), "--tls-key-file", text(key)]);
        if let Some(ca) = ca {
            command.args(["--tls-client-ca-file", text(ca), "--http-tls-client-auth", "required"]);
        }
        let output = command.output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(!error.contains("s3cr3t"), "{error}");
        error
    };
    for (error, setting, file, why) in [
        (refused(&nothing, key, None), "tls.cert_file", &nothing, "holds no certificate"),
        (refused(cert, &nothing, None), "tls.key_file", &nothing, "holds no private key"),
        (refused(cert, cert, None), "tls.key_file", cert, "holds no private key"),
        (refused(cert, &other.key, None), "tls.key_file", &other.key, "the key is not that of"),
        (refused(&expired.cert, &expired.key, None), "tls.cert_file", &expired.cert, "expired at"),
        (refused(cert, key, Some(&nothing)), "tls.client_ca_file", &nothing, "no certificate"),
    ] {
        let expected = format!("{setting}: {}: ", file.display());
        assert!(error.contains(&expected) && error.contains(why), "{expected}{why}:\n{error}");
    }
    let missing = setting.folder.path().join("missing");
    let error = refused(&missing, key, None);
    assert!(error.contains("--tls-cert-file") && error.contains(text(&missing)), "{error}");
}
