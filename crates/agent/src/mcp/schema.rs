//! Whether arguments fit a server's JSON schema, before they are sent.
//!
//! The part of JSON Schema that tools use is understood: `type`, `properties`, `required`,
//! `additionalProperties`, `items`, `enum`, `const`, `anyOf`, `oneOf` (as `anyOf`), `allOf`, bounds of
//! numbers, lengths and counts, and `$ref` within the schema. What else a schema asks for (`pattern`,
//! `format`, `if`, ...) the server decides itself, and says in its answer. So nothing is refused here
//! that the schema allows.

use serde_json::{Map, Value};

/// References may go round in circles.
const DEEPEST: usize = 32;

pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value, &mut Vec::new(), 0)
}

struct Checker<'a> {
    root: &'a Value,
}

type Path<'a> = Vec<std::borrow::Cow<'a, str>>;

impl<'a> Checker<'a> {
    fn check<'v>(
        &self,
        schema: &'a Value,
        value: &'v Value,
        path: &mut Path<'v>,
        depth: usize,
    ) -> Result<(), String> {
        let schema = match schema {
            Value::Bool(false) => return Err(at(path, "nothing is allowed here")),
            Value::Object(schema) if depth < DEEPEST => schema,
            _ => return Ok(()),
        };
        if let Some(name) = schema.get("$ref").and_then(Value::as_str)
            && let Some(meant) = name.strip_prefix('#').and_then(|name| self.root.pointer(name))
        {
            self.check(meant, value, path, depth + 1)?;
        }
        kind(schema, value, path)?;
        one_of_few(schema, value, path)?;
        bounds(schema, value, path)?;
        for part in list(schema, "allOf") {
            self.check(part, value, path, depth + 1)?;
        }
        for choice in ["anyOf", "oneOf"] {
            self.any(list(schema, choice), value, path, depth)?;
        }
        match value {
            Value::Object(fields) => self.fields(schema, fields, path, depth),
            Value::Array(items) => self.items(schema, items, path, depth),
            _ => Ok(()),
        }
    }

    /// The reason of the first that does not fit stands for all.
    fn any<'v>(
        &self,
        choices: &'a [Value],
        value: &'v Value,
        path: &mut Path<'v>,
        depth: usize,
    ) -> Result<(), String> {
        let mut first = Ok(());
        for choice in choices {
            let before = path.len();
            let fits = self.check(choice, value, path, depth + 1);
            path.truncate(before);
            match (fits, &first) {
                (Ok(()), _) => return Ok(()),
                (Err(reason), Ok(())) => first = Err(reason),
                (Err(_), Err(_)) => {}
            }
        }
        first
    }

    fn fields<'v>(
        &self,
        schema: &'a Map<String, Value>,
        fields: &'v Map<String, Value>,
        path: &mut Path<'v>,
        depth: usize,
    ) -> Result<(), String> {
        let missing = list(schema, "required").iter().filter_map(Value::as_str);
        if let Some(name) = missing.into_iter().find(|name| !fields.contains_key(*name)) {
            return Err(at(path, &format!("\"{name}\" is missing")));
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.contains_key("patternProperties");
        for (name, value) in fields {
            path.push(name.as_str().into());
            match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) => self.check(schema, value, path, depth + 1)?,
                (None, Some(Value::Bool(false))) if !patterns => {
                    return Err(at(path, "there is no such argument"));
                }
                (None, Some(schema)) if !patterns => self.check(schema, value, path, depth + 1)?,
                (None, _) => {}
            }
            path.pop();
        }
        Ok(())
    }

    fn items<'v>(
        &self,
        schema: &'a Map<String, Value>,
        items: &'v [Value],
        path: &mut Path<'v>,
        depth: usize,
    ) -> Result<(), String> {
        let first = list(schema, "prefixItems");
        for (number, item) in items.iter().enumerate() {
            let Some(schema) = first.get(number).or_else(|| schema.get("items")) else { continue };
            path.push(number.to_string().into());
            self.check(schema, item, path, depth + 1)?;
            path.pop();
        }
        Ok(())
    }
}

fn list<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn at(path: &[std::borrow::Cow<'_, str>], what: &str) -> String {
    if path.is_empty() { what.to_owned() } else { format!("at \"{}\": {what}", path.join("/")) }
}

fn kind(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Result<(), String> {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let whole = |n: &serde_json::Number| n.as_f64().is_some_and(|n| n.fract() == 0.0);
    let fits = |wanted: &&str| match *wanted {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(whole),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if wanted.is_empty() || wanted.iter().any(fits) {
        return Ok(());
    }
    Err(at(path, &format!("{} is wanted, not {}", wanted.join(" or "), name(value))))
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn one_of_few(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Result<(), String> {
    let allowed = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(allowed)), _) => allowed.as_slice(),
        (_, Some(only)) => std::slice::from_ref(only),
        _ => return Ok(()),
    };
    if allowed.contains(value) {
        return Ok(());
    }
    let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
    Err(at(path, &format!("one of {} is wanted", allowed.join(", "))))
}

fn bounds(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Result<(), String> {
    #[expect(clippy::cast_precision_loss, reason = "bounds of lengths are small")]
    let (size, least, most, of) = match value {
        Value::Number(n) => (n.as_f64().unwrap_or_default(), "minimum", "maximum", "a number"),
        Value::String(text) => (text.chars().count() as f64, "minLength", "maxLength", "a length"),
        Value::Array(items) => (items.len() as f64, "minItems", "maxItems", "a count"),
        Value::Null | Value::Bool(_) | Value::Object(_) => return Ok(()),
    };
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(least) = bound(least).filter(|least| size < *least) {
        return Err(at(path, &format!("{of} of at least {least} is wanted")));
    }
    if let Some(most) = bound(most).filter(|most| size > *most) {
        return Err(at(path, &format!("{of} of at most {most} is wanted")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 2},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "unit": {"enum": ["C", "F"]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 2},
                "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "deep": {"type": "object", "additionalProperties": {"type": "number"}}
            },
            "required": ["city"],
            "additionalProperties": false,
            "$defs": {"tag": {"type": "string", "not": {"const": "x"}}}
        });
        let check = |value: Value, expected: Result<(), &str>| {
            let result = check(&schema, &value);
            assert_eq!(result.as_ref().map_err(String::as_str).copied(), expected, "{value}");
        };
        check(
            json!({"city": "Bern", "days": 2.0, "unit": "C", "tags": ["a"], "when": null}),
            Ok(()),
        );
        check(json!({"city": "Bern", "deep": {"a": 1.5}}), Ok(()));
        check(json!([]), Err("object is wanted, not array"));
        check(json!({}), Err("\"city\" is missing"));
        check(json!({"city": 1}), Err("at \"city\": string is wanted, not number"));
        check(json!({"city": "B"}), Err("at \"city\": a length of at least 2 is wanted"));
        check(
            json!({"city": "Bern", "days": 1.5}),
            Err("at \"days\": integer is wanted, not number"),
        );
        check(
            json!({"city": "Bern", "days": 8}),
            Err("at \"days\": a number of at most 7 is wanted"),
        );
        check(
            json!({"city": "Bern", "unit": "K"}),
            Err("at \"unit\": one of \"C\", \"F\" is wanted"),
        );
        check(
            json!({"city": "Bern", "tags": ["a", 1]}),
            Err("at \"tags/1\": string is wanted, not number"),
        );
        check(
            json!({"city": "Bern", "tags": ["a", "b", "c"]}),
            Err("at \"tags\": a count of at most 2 is wanted"),
        );
        check(json!({"city": "Bern", "when": 1}), Err("at \"when\": string is wanted, not number"));
        check(
            json!({"city": "Bern", "deep": {"a": "b"}}),
            Err("at \"deep/a\": number is wanted, not string"),
        );
        check(json!({"city": "Bern", "other": 1}), Err("at \"other\": there is no such argument"));
    }

    #[test]
    fn a_schema_that_goes_round_in_circles_ends() {
        let round = json!({"$ref": "#"});
        assert_eq!(check(&round, &json!({})), Ok(()));
        let odd = json!({"type": 7, "properties": [], "required": "x", "anyOf": []});
        assert_eq!(check(&odd, &json!({"a": 1})), Ok(()));
    }
}
