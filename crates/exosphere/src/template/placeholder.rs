//! Placeholders in inputs: `${{ node.outputs.field }}` and `${{ store.key }}`. They are substituted once.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// As it stands.
    Text(&'t str),
    /// A field of the outputs of a node.
    Output(&'t str, &'t str),
    /// A value of the store.
    Store(&'t str),
}

/// The parts of a text.
///
/// # Errors
/// A placeholder that cannot be read.
pub(crate) fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, inside)) = rest.split_once("${{") {
        let (inside, after) = inside
            .split_once("}}")
            .ok_or_else(|| format!("found \"${{{{\" without \"}}}}\" in {text:?}; close the placeholder"))?;
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(placeholder(inside)?);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

fn placeholder(inside: &str) -> Result<Part<'_>, String> {
    let words: Vec<&str> = inside.split('.').map(str::trim).collect();
    match words[..] {
        ["store", key] if !key.is_empty() => Ok(Part::Store(key)),
        [node, "outputs", field] if !node.is_empty() && !field.is_empty() && node != "store" => {
            Ok(Part::Output(node, field))
        }
        _ => Err(format!(
            "found the placeholder \"${{{{{inside}}}}}\"; allowed are \"${{{{ NODE.outputs.FIELD }}}}\" and \
             \"${{{{ store.KEY }}}}\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_among_text() {
        assert_eq!(parts(""), Ok(vec![]));
        assert_eq!(parts("plain }} $ {"), Ok(vec![Part::Text("plain }} $ {")]));
        let read = parts("a ${{ p.outputs.x }}${{store.k}} b").unwrap();
        assert_eq!(read, [Part::Text("a "), Part::Output("p", "x"), Part::Store("k"), Part::Text(" b")]);
    }

    #[test]
    fn other_placeholders_are_refused() {
        for text in [
            "${{",
            "${{ a }}",
            "${{ a.b.c }}",
            "${{ a.outputs }}",
            "${{ store.a.b }}",
            "${{ .outputs.x }}",
            "${{ store. }}",
            "${{ a.outputs. }}",
            "${{ store.outputs.x }}",
        ] {
            assert!(parts(text).is_err(), "{text}");
        }
    }
}
