//! Prints the OpenAPI document; `cargo xtask docs` puts it in its place.

fn main() -> Result<(), serde_json::Error> {
    print!("{}", nacre_wire::openapi::text()?);
    Ok(())
}
