#!/bin/sh
# Stands before rustc for the crates of the workspace (RUSTC_WORKSPACE_WRAPPER) when `cargo xtask` builds the
# programs that go into sandboxes: those two are linked static and without names for a debugger. As flags for
# everything, this would make cargo build every dependency once more for them.
case " $* " in
  *" --crate-name nacre_guest "* | *" --crate-name nacre_agent "*)
    case " $* " in
      *" --crate-type bin "*) exec "$@" -C target-feature=+crt-static -C strip=symbols ;;
    esac
    ;;
esac
exec "$@"
