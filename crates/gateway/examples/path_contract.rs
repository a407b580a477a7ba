//! Prints the path contract as a table; `cargo xtask docs` puts it in its place.

fn main() {
    print!("{}", nacre_gateway::routes::markdown());
}
