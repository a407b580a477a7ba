//! What tells programs in the sandbox about the way out.

use nacre_wire::egress::PROXY_PORT;

/// Names and values, for every command that does not set its own.
pub type Variables = Vec<(&'static str, String)>;

/// Never through the proxy: what is in the sandbox itself.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// For programs of a sandbox with a proxy. `routed`: those that know no proxy get out as well.
///
/// `ALL_PROXY` names the HTTP side, although the port speaks SOCKS5 too: Python's httpx, and with it
/// the SDKs of the model providers, refuses to start when it finds a SOCKS proxy there and lacks the
/// package for it.
pub fn variables(routed: bool) -> Variables {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    // curl reads the first only in lower case, others the rest only in upper case.
    let mut variables: Variables =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
            .into_iter()
            .map(|name| (name, proxy.clone()))
            .collect();
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, DIRECT.to_owned())));
    if !routed {
        variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
        variables.push(("GIT_SSH_COMMAND", ssh_command()));
    }
    variables
}

/// ssh knows no proxy. A shell reads this, then ssh, for whom a percent sign means something, then a
/// shell again.
fn ssh_command() -> String {
    format!("ssh -o 'ProxyCommand=bash -c '\\''{}'\\'' %h %p'", connect_script(PROXY_PORT))
}

/// Where packets have no way, bash and cat make one: they ask for a `CONNECT`, skip the head of the
/// answer and pass bytes. Host and port are its arguments. A refusal is a few lines, after which the
/// proxy waits for more.
fn connect_script(proxy: u16) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{proxy}; \
         printf \"CONNECT $0:$1 HTTP/1.1\\r\\nHost: $0:$1\\r\\n\\r\\n\" >&3; \
         read -r _ code _ <&3; \
         end=$(printf \"\\r\"); while read -r line <&3 && [ \"$line\" != \"$end\" ]; do :; done; \
         if [ \"$code\" != 200 ]; then \
         while read -t 1 -r line <&3; do echo \"$line\" >&2; done; exit 1; fi; \
         cat <&3 & exec cat >&3"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    #[test]
    fn both_spellings_name_the_proxy_and_what_needs_none() {
        let all = variables(true);
        let value = |name: &str| {
            all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        };
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            assert_eq!(value(name), Some("http://127.0.0.1:8003"), "{name}");
        }
        assert_eq!(value("no_proxy"), Some("localhost,127.0.0.1,::1"));
        assert_eq!(value("GIT_SSH_COMMAND"), None, "packets have a way of their own");
        assert!(variables(false).iter().any(|(name, _)| *name == "GIT_SSH_COMMAND"));
    }

    /// A proxy for one connection, which answers like this and sends back what it gets.
    fn proxy(answer: &'static str) -> (u16, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            let mut word = [0; 5];
            if stream.read_exact(&mut word).is_ok() {
                stream.write_all(&word).unwrap();
            }
            String::from_utf8(head).unwrap()
        });
        (port, serving)
    }

    fn connect(port: u16) -> std::process::Output {
        let script = connect_script(port);
        let mut bash = Command::new("bash");
        bash.args(["-c", &script, "git.example.com", "22"]);
        let mut bash = bash
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Gone already, if it was refused.
        let _ = bash.stdin.take().unwrap().write_all(b"\0hi\r\n");
        bash.wait_with_output().unwrap()
    }

    #[test]
    fn bash_and_cat_make_a_way_for_ssh() {
        let (port, serving) = proxy("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(connect(port).stdout, b"\0hi\r\n");
        let asked = "CONNECT git.example.com:22 HTTP/1.1\r\nHost: git.example.com:22\r\n\r\n";
        assert_eq!(serving.join().unwrap(), asked);
        let (port, serving) = proxy("HTTP/1.1 403 Forbidden\r\nx: y\r\n\r\nnacre: closed\n");
        let refused = connect(port);
        assert_eq!((refused.status.code(), refused.stderr), (Some(1), b"nacre: closed\n".to_vec()));
        drop(serving);
    }

    #[test]
    fn ssh_understands_the_command_that_is_set() {
        let command = format!("{} -G git.example.com", ssh_command());
        let said = Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let expected = format!("proxycommand bash -c '{}' %h %p", connect_script(PROXY_PORT));
        assert!(said.lines().any(|line| line == expected), "{said}");
    }
}
