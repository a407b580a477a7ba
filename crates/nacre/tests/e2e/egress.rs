//! The way out, with the programs that people use.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::computer::{Running, TestComputer};

/// A server on this machine's loopback that answers each connection with `answer`, after the head of
/// a request or a line.
fn server(answer: fn(&str) -> Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap(), answer));
        }
    });
    port
}

fn serve(mut stream: TcpStream, answer: fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let blank = line.trim_end().is_empty();
            head.push_str(&line);
            if blank || !head.contains("HTTP/1.1") {
                break;
            }
        }
        if stream.write_all(&answer(&head)).is_err() {
            return;
        }
    }
}

fn http(head: &str) -> Vec<u8> {
    let body = head.replace('\r', "");
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Says whether it can be reached, and by which address.
fn allow(computer: &TestComputer, port: u16) {
    computer.ok(&["egress", "allow", &format!("127.0.0.1:{port}")]);
}

/// A name that leads to this machine, for which nobody else is asked.
fn allow_here(computer: &TestComputer, port: u16) -> String {
    computer.ok(&["egress", "allow", &format!("localhost:{port}"), "--private"]);
    allow(computer, port);
    format!("localhost:{port}")
}

/// The last `count` records, oldest first, once there are as many.
fn records(computer: &TestComputer, count: usize) -> Vec<serde_json::Value> {
    let mut command = computer.command(&["egress", "log", "-f", "--json", "-n", "1000"]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.take(count).map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let found = found.collect();
    child.kill().unwrap();
    child.wait().unwrap();
    found
}

#[test]
fn curl_gets_out_by_http_connect_and_socks_and_is_told_why_not() {
    let computer = TestComputer::start();
    let port = server(http);
    // Everything on loopback is closed at first, whatever it is called. `--noproxy ''`: what is
    // called localhost would be looked for in the sandbox.
    let curl = "curl -sS -m 20 --noproxy ''";
    let told =
        computer.exec(&format!("{curl} -w '%{{http_code}}\n' http://127.0.0.1:{port}/; true"));
    assert!(told.contains("is not on the public internet"), "{told}");
    assert!(
        told.contains(&format!("hint: on the host: nacre egress allow -s live 127.0.0.1:{port}")),
        "{told}"
    );
    assert!(told.ends_with("403\n"), "{told}");
    let here = allow_here(&computer, port);
    let plain = computer.exec(&format!("{curl} http://{here}/plain?q=1 -H 'Proxy-Connection: x'"));
    assert!(plain.starts_with("GET /plain?q=1 HTTP/1.1\n"), "{plain}");
    assert!(plain.to_lowercase().contains(&format!("\nhost: {here}\n")), "{plain}");
    assert!(!plain.to_lowercase().contains("proxy"), "{plain}");
    let twice = computer.exec(&format!("{curl} http://{here}/a http://{here}/b"));
    assert!(twice.contains("GET /a ") && twice.contains("GET /b "), "{twice}");
    let tunnel = computer.exec(&format!("{curl} -p http://{here}/tunnel"));
    assert!(tunnel.starts_with("GET /tunnel HTTP/1.1\n"), "{tunnel}");
    let socks =
        format!("curl -sS -m 20 --noproxy '' -x socks5h://127.0.0.1:8003 http://{here}/socks");
    assert!(computer.exec(&socks).starts_with("GET /socks HTTP/1.1\n"));
    let numbers =
        format!("curl -sS -m 20 --noproxy '' -x socks5://127.0.0.1:8003 http://127.0.0.1:{port}/n");
    assert!(computer.exec(&numbers).starts_with("GET /n HTTP/1.1\n"));
    // Nobody at all is there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    allow(&computer, free);
    let nobody =
        computer.exec(&format!("{curl} -w '%{{http_code}}' http://127.0.0.1:{free}/; true"));
    assert!(nobody.contains("connection refused") && nobody.ends_with("502"), "{nobody}");
    // The refusal, four that closed, and nobody.
    let all = records(&computer, 7);
    let verdicts: Vec<_> = all.iter().map(|record| record["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts[0], "refused");
    assert!(verdicts.contains(&"failed"), "{verdicts:?}");
}

/// A network of its own, in which this computer's gateway runs beside servers that have an address
/// and a name there: nothing of the machine's own network is asked.
struct Outside {
    computer: TestComputer,
    servers: Child,
    dir: tempfile::TempDir,
}

const NAME: &str = "service.example.com";
const ADDRESS: &str = "192.0.2.7";
const PORT: u16 = 8080;
/// This machine's too, and of the public internet.
const PUBLIC_NAME: &str = "www.example.com";
const PUBLIC: &str = "93.184.216.34";

/// Answers HTTP, shows a repository, and holds one connection open for whoever asks.
const SERVERS: &str = r#"
import http.server, os, socketserver, subprocess, sys
os.chdir(sys.argv[1])
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args):
        pass
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            data = self.request.recv(65536)
            if not data:
                break
            self.request.sendall(data)
socketserver.ThreadingTCPServer.allow_reuse_address = True
echo = socketserver.ThreadingTCPServer(("192.0.2.7", 8081), Echo)
import threading
threading.Thread(target=echo.serve_forever, daemon=True).start()
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler)
print("ready", flush=True)
server.serve_forever()
"#;

impl Outside {
    fn start() -> Self {
        Self::after("true")
    }

    /// Where no device is to be had.
    fn without_device() -> Self {
        Self::after("mount -t tmpfs none /dev/net")
    }

    /// Runs `first` in that network, which sees the machine's files.
    fn after(first: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("www")).unwrap();
        std::fs::write(path("www/hello.txt"), "hello from outside\n").unwrap();
        std::fs::write(path("servers.py"), SERVERS).unwrap();
        let hosts = format!("127.0.0.1 localhost\n{ADDRESS} {NAME}\n{PUBLIC} {PUBLIC_NAME}\n");
        std::fs::write(path("hosts"), hosts).unwrap();
        let script = format!(
            "{first} && mount --bind {0}/hosts /etc/hosts && ip link set lo up && \
             ip addr add {ADDRESS}/32 dev lo && ip addr add {PUBLIC}/32 dev lo && exec python3 {0}/servers.py {0}/www",
            dir.path().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", &script]).stdout(Stdio::piped());
        let mut servers = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(servers.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        let outside = Self { computer: TestComputer::switched_off(), servers, dir };
        let up = outside.command(&["up", "--detach", "--listen", "127.0.0.1:0"]).output().unwrap();
        assert!(up.status.success(), "{up:?}");
        outside
    }

    /// `nacre` in that network.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--mount", "--target", &self.servers.id().to_string(), "--"]);
        command.arg(env!("CARGO_BIN_EXE_nacre")).args(args);
        command.env("NACRE_DATA", self.computer.data()).env("NACRE_DESKTOP_SEED", "false");
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.computer.run(&["down"]);
        let _ = self.servers.kill();
        let _ = self.servers.wait();
    }
}

/// Connects without a proxy, sends a request, closes its half and prints what comes.
const RAW: &str = "import socket,sys\n\
s=socket.create_connection((sys.argv[1],int(sys.argv[2])),20)\n\
s.sendall(b'GET /hello.txt HTTP/1.0\\r\\n\\r\\n'); s.shutdown(1)\n\
print(s.makefile().read())";

#[test]
fn programs_that_know_no_proxy_get_out_too() {
    let outside = Outside::start();
    let computer = &outside.computer;
    let raw = |host: &str, port: u16| {
        computer.run(&["exec", "--", "python3", "-c", RAW, host, &port.to_string()])
    };
    // The rules are against it: the program is told before it has a connection.
    let refused = raw(NAME, PORT);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("No route to host"), "{errors}");
    let record = records(computer, 1).remove(0);
    assert_eq!((&record["host"], &record["verdict"]), (&NAME.into(), &"refused".into()));
    assert_eq!(record["address"], ADDRESS, "the host looked the name up");
    computer.ok(&["egress", "allow", NAME, "--private"]);
    computer.ok(&["egress", "allow", ADDRESS]);
    for host in [NAME, ADDRESS] {
        let read = raw(host, PORT);
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(text.ends_with("hello from outside\n\n"), "{host}: {read:?}");
    }
    // Nobody listens there.
    let nobody = raw(NAME, 9);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("Connection refused"), "{nobody:?}");
    let none = raw("nobody-has-this-name.invalid", 80);
    assert!(String::from_utf8_lossy(&none.stderr).contains("Connection refused"), "{none:?}");
    // Node's own fetch takes no notice of the variables.
    let fetch =
        format!("fetch('http://{NAME}:{PORT}/hello.txt').then(r=>r.text()).then(console.log)");
    let node = computer.ok(&["exec", "--env", "HTTP_PROXY=", "--", "node", "-e", &fetch]);
    assert_eq!(node, "hello from outside\n\n");
    // Datagrams are refused, and not swallowed.
    let udp = "import socket\n\
        s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(20)\n\
        s.connect(('192.0.2.7',9)); s.send(b'x'); s.recv(1)";
    let udp = computer.run(&["exec", "--", "python3", "-c", udp]);
    assert!(String::from_utf8_lossy(&udp.stderr).contains("ConnectionRefused"), "{udp:?}");
}

#[test]
fn a_public_address_of_this_machine_is_closed() {
    let outside = Outside::start();
    let computer = &outside.computer;
    let get =
        |host: &str| computer.exec(&format!("curl -sS -m 30 http://{host}:{PORT}/hello.txt; true"));
    for host in [PUBLIC, PUBLIC_NAME] {
        let told = get(host);
        assert!(told.contains(&format!("its address {PUBLIC} is one of this machine")), "{told}");
    }
    computer.ok(&["egress", "allow", &format!("{PUBLIC}:{PORT}")]);
    for host in [PUBLIC, PUBLIC_NAME] {
        assert_eq!(get(host), "hello from outside\n");
    }
}

/// A program that has nothing but the system: it knows no proxy, and asks for a name as most do, and
/// then as programs do that were made with Go: it reads where the name server is and asks it itself.
const PROGRAM: &str = r#"
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};

fn look_up(name: &str) -> Ipv4Addr {
    let settings = std::fs::read_to_string("/etc/resolv.conf").unwrap();
    let server = settings.lines().find_map(|line| line.strip_prefix("nameserver ")).unwrap();
    let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(label.len() as u8);
        question.extend(label.as_bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    socket.send_to(&question, (server.trim(), 53)).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).unwrap();
    <[u8; 4]>::try_from(&answer[length - 4..length]).unwrap().into()
}

fn get(mut stream: TcpStream) {
    stream.write_all(b"GET /hello.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    print!("{}", answer.split("\r\n\r\n").last().unwrap());
}

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let port = std::env::args().nth(2).unwrap().parse().unwrap();
    get(TcpStream::connect((name.as_str(), port)).unwrap());
    get(TcpStream::connect((look_up(&name), port)).unwrap());
}
"#;

#[test]
fn a_static_program_that_asks_for_names_itself_gets_out() {
    let outside = Outside::start();
    let computer = &outside.computer;
    computer.ok(&["egress", "allow", NAME, "--private"]);
    let file = |name: &str| outside.dir.path().join(name);
    std::fs::write(file("program.rs"), PROGRAM).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2021", "-C", "target-feature=+crt-static", "-o"]);
    let made = rustc.args([file("program"), file("program.rs")]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    computer.ok(&["cp", file("program").to_str().unwrap(), ":program"]);
    let got = computer.exec(&format!("./program {NAME} {PORT}"));
    assert_eq!(got, "hello from outside\n".repeat(2));
}

#[test]
fn many_megabytes_and_many_connections_pass_without_a_proxy() {
    let outside = Outside::start();
    let computer = &outside.computer;
    computer.ok(&["egress", "allow", NAME, "--private"]);
    let large: Vec<u8> =
        (0..24_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(outside.dir.path().join("www/large.bin"), &large).unwrap();
    let sum =
        Command::new("sha256sum").arg(outside.dir.path().join("www/large.bin")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap().to_owned();
    let got = computer
        .exec(&format!("curl -sS -m 60 --noproxy '*' http://{NAME}:{PORT}/large.bin | sha256sum"));
    assert_eq!(got.split(' ').next().unwrap(), sum);
    let many = format!(
        "import socket\n\
         all=[socket.create_connection(('{NAME}',8081),30) for _ in range(200)]\n\
         for n,s in enumerate(all): s.sendall(b'%8d' % n)\n\
         for n,s in enumerate(all):\n assert s.recv(8, socket.MSG_WAITALL) == b'%8d' % n\n\
         for s in all: s.close()\n\
         print(len(all))"
    );
    assert_eq!(computer.ok(&["exec", "--", "python3", "-c", &many]), "200\n");
    let sent: u64 = records(computer, 201)
        .iter()
        .filter(|r| r["port"] == 8081)
        .map(|r| r["sent"].as_u64().unwrap())
        .sum();
    assert_eq!(sent, 1600);
}

#[test]
fn a_rule_that_changes_cuts_what_is_open_and_a_gateway_that_comes_back_lets_out_again() {
    let outside = Outside::start();
    let computer = &outside.computer;
    computer.ok(&["egress", "allow", NAME, "--private"]);
    // Says a word, waits for it to come back, and then for the end.
    let hold = format!(
        "import socket\ns=socket.create_connection(('{NAME}',8081),30); s.settimeout(60)\n\
         s.sendall(b'word'); print(s.recv(4).decode(), flush=True)\n\
         try: print('end', len(s.recv(1)), flush=True)\n\
         except OSError as e: print('end', type(e).__name__, flush=True)"
    );
    let (mut held, word) =
        Running::start(computer.command(&["exec", "--", "python3", "-c", &hold]));
    assert_eq!(word, "word");
    let view = computer.json(&["egress", "show", "--json"]);
    assert_eq!((&view["open"][0]["host"], &view["open"][0]["sent"]), (&NAME.into(), &4.into()));
    computer.ok(&["egress", "deny", "192.0.2.0/24"]);
    assert!(held.line().starts_with("end"));
    assert_eq!(held.code(), Some(0));
    let cut = records(computer, 1).remove(0);
    assert_eq!(
        (&cut["verdict"], &cut["sent"], &cut["received"]),
        (&"cut".into(), &4.into(), &4.into())
    );
    computer.ok(&["egress", "forget", "192.0.2.0/24"]);
    // What is open is in the record, and stays there when the gateway has no time to say how it ended.
    let (_held, word) = Running::start(computer.command(&["exec", "--", "python3", "-c", &hold]));
    assert_eq!(word, "word");
    let last =
        |computer: &TestComputer| computer.json(&["egress", "log", "--json"])["records"][0].clone();
    let open = last(computer);
    assert_eq!((&open["verdict"], &open["sent"]), (&"open".into(), &4.into()));
    // The sandbox runs on while the gateway is away.
    computer.signal_gateway(Signal::KILL);
    let up = outside.command(&["up", "--detach", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(up.status.success(), "{up:?}");
    let killed = last(computer);
    assert_eq!((&killed["id"], &killed["verdict"]), (&open["id"], &"broken".into()));
    assert_eq!(killed["reason"], "the gateway was killed");
    let get = format!("curl -sS -m 30 http://{NAME}:{PORT}/hello.txt");
    assert_eq!(computer.exec(&get), "hello from outside\n");
    // Nothing at all, and the list alone.
    computer.ok(&["egress", "mode", "none"]);
    let closed = computer.exec(&format!("{get}; true"));
    assert!(closed.contains("nacre egress mode -s live open"), "{closed}");
    computer.ok(&["egress", "mode", "allow-list"]);
    assert_eq!(computer.exec(&get), "hello from outside\n");
    let other = computer.exec("curl -sS -m 30 http://other.example.com/; true");
    assert!(other.contains("it is not on the list of what is allowed"), "{other}");
}

#[test]
fn git_clones_over_http_and_over_ssh() {
    let outside = Outside::start();
    publish(&outside);
    let url = format!("http://{NAME}:{PORT}/repo.git");
    let cloned = outside.computer.exec(&format!("git clone -q {url} a && cat a/file"));
    assert_eq!(cloned, "content\n");
    assert_eq!(outside.computer.exec("echo $GIT_SSH_COMMAND"), "\n");
    clone_over_ssh(&outside);
}

#[test]
fn git_clones_over_ssh_where_there_is_no_device() {
    let outside = Outside::without_device();
    publish(&outside);
    assert!(!outside.computer.exec("cat /proc/net/dev").contains("tun0"));
    assert!(outside.computer.exec("echo $GIT_SSH_COMMAND").contains("/dev/tcp/127.0.0.1/8003"));
    clone_over_ssh(&outside);
}

/// A repository of one commit.
fn publish(outside: &Outside) {
    outside.computer.ok(&["egress", "allow", NAME, "--private"]);
    let made = Command::new("sh")
        .args([
            "-c",
            "git init -q work && cd work && echo content > file && git add file && \
               git -c user.name=t -c user.email=t@example.com commit -qm first && cd .. && \
               git clone -q --bare work repo.git && cd repo.git && git update-server-info",
        ])
        .current_dir(outside.dir.path().join("www"))
        .status();
    assert!(made.unwrap().success());
}

/// As a person has set up ssh, and with what a sandbox tells git itself.
fn clone_over_ssh(outside: &Outside) {
    let computer = &outside.computer;
    let _server = Ssh::start(outside);
    let copied = computer.run(&["cp", outside.dir.path().join("client").to_str().unwrap(), ":key"]);
    assert!(copied.status.success(), "{copied:?}");
    let settings = "IdentityFile /workspace/key/id\\nStrictHostKeyChecking accept-new\\n\
                    UserKnownHostsFile /workspace/key/known\\nBatchMode yes\\n";
    // ssh looks where the system says that home is, whatever HOME says.
    let cloned = computer.exec(&format!(
        "chmod 600 key/id; home=$(getent passwd $(id -u) | cut -d: -f6); mkdir -p $home/.ssh && \
         printf '{settings}' > $home/.ssh/config && chmod 600 $home/.ssh/config && \
         git clone -q ssh://root@{NAME}:2022{}/www/repo.git b && cat b/file",
        outside.dir.path().display()
    ));
    assert_eq!(cloned, "content\n");
}

/// An ssh server in that network, with keys of its own.
struct Ssh(Child);

impl Ssh {
    fn start(outside: &Outside) -> Self {
        let dir = outside.dir.path();
        std::fs::create_dir(dir.join("client")).unwrap();
        for key in ["host", "client/id"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.join(key))
                .status();
            assert!(made.unwrap().success());
        }
        std::fs::create_dir_all("/run/sshd").unwrap();
        let config = format!(
            "Port 2022\nListenAddress {ADDRESS}\nHostKey {0}/host\nAuthorizedKeysFile {0}/client/id.pub\n\
             StrictModes no\nPermitRootLogin yes\nUsePAM no\nPidFile none\n",
            dir.display()
        );
        std::fs::write(dir.join("sshd"), config).unwrap();
        let mut command = Command::new("nsenter");
        command.args(["--net", "--mount", "--target", &outside.servers.id().to_string(), "--"]);
        command
            .args(["/usr/sbin/sshd", "-D", "-e", "-f"])
            .arg(dir.join("sshd"))
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        Self(child)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Variables by which the ordinary clients find their registries on this machine.
fn client_variables() -> Vec<String> {
    let known =
        ["PIP_", "NPM_CONFIG_", "npm_config_", "CARGO_REGISTR", "CARGO_HTTP", "CARGO_NET", "UV_"];
    let certificates = [
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
    ];
    std::env::vars()
        .filter(|(name, _)| {
            known.iter().any(|start| name.starts_with(start))
                || certificates.contains(&name.as_str())
        })
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Copies a file of the user's configuration into the workspace, where `HOME` is in these tests.
fn carry(computer: &TestComputer, name: &str) {
    let home = std::env::var("HOME").unwrap();
    let from = Path::new(&home).join(name);
    if from.is_file() {
        if let Some(parent) = Path::new(name).parent() {
            computer.exec(&format!("mkdir -p /workspace/home/{}", parent.display()));
        }
        computer.ok(&["cp", from.to_str().unwrap(), &format!(":home/{name}")]);
    }
}

/// Runs it with what the clients of this machine are configured with. Where a registry is at an
/// address that is not public, exactly what was refused is allowed and it is tried again.
fn install(computer: &TestComputer, script: &str) -> String {
    computer.exec("mkdir -p /workspace/home");
    for name in [".npmrc", ".pip/pip.conf", ".config/pip/pip.conf", ".cargo/config.toml"] {
        carry(computer, name);
    }
    let variables = client_variables();
    let mut args = vec!["exec", "--env", "HOME=/workspace/home"];
    args.extend(variables.iter().flat_map(|variable| ["--env", variable]));
    args.extend(["--", "sh", "-c", script]);
    let mut last = String::new();
    for _ in 0..8 {
        let output = computer.run(&args);
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        last = String::from_utf8_lossy(&output.stderr).into_owned();
        let log = computer.json(&["egress", "log", "--refused", "--json"]);
        let rules = computer.json(&["egress", "show", "--json"]);
        let known: Vec<_> =
            rules["rules"].as_array().unwrap().iter().map(|rule| rule["target"].clone()).collect();
        let refused = log["records"].as_array().unwrap().iter();
        let mut fresh: Vec<_> = refused
            .map(|record| format!("{}:{}", record["host"].as_str().unwrap(), record["port"]))
            .filter(|target| !known.contains(&target.as_str().into()))
            .collect();
        fresh.sort();
        fresh.dedup();
        assert!(!fresh.is_empty(), "nothing was refused, and it failed: {last}");
        for target in fresh {
            computer.ok(&["egress", "allow", &target, "--private"]);
        }
    }
    panic!("{last}");
}

#[test]
fn npm_installs_through_the_door() {
    let computer = TestComputer::start();
    let script = "rm -rf n && mkdir n && cd n && npm init -y >/dev/null && \
                  npm install --no-audit --no-fund --fetch-retries=0 left-pad@1.3.0 >&2 && \
                  node -p 'require(\"left-pad\")(7,3,0)'";
    assert_eq!(install(&computer, script), "007\n");
}

#[test]
fn pip_installs_through_the_door() {
    let computer = TestComputer::start();
    let script = "rm -rf p && /usr/bin/python3 -m pip install --retries 0 --no-cache-dir --target p \
                  iniconfig==2.0.0 >&2 && cd p && /usr/bin/python3 -c 'import iniconfig; print(iniconfig.__name__)'";
    assert_eq!(install(&computer, script), "iniconfig\n");
}

#[test]
fn cargo_fetches_through_the_door() {
    let computer = TestComputer::start();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(sysroot.stdout).unwrap();
    computer.exec("mkdir -p tool/bin tool/lib");
    let library = std::fs::read_dir(Path::new(sysroot.trim()).join("lib")).unwrap();
    let libraries = library.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for file in ["bin/cargo", "bin/rustc"]
        .map(|name| Path::new(sysroot.trim()).join(name))
        .into_iter()
        .chain(libraries)
    {
        let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        computer.ok(&["cp", file.to_str().unwrap(), &format!(":tool/{folder}/{name}")]);
    }
    let script = "rm -rf c && mkdir -p c/src && cd c && touch src/lib.rs && \
        printf '[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"=1.0.1\"\n' > Cargo.toml && \
        PATH=/workspace/tool/bin:$PATH CARGO_NET_RETRY=0 cargo fetch >&2 && \
        ls $HOME/.cargo/registry/src/*/ | grep itoa";
    assert_eq!(install(&computer, script), "itoa-1.0.1\n");
}
