//! Every operator, macro and function, and what evaluation refuses.

use super::{Expression, Fault, Roots, Val, embedded};
use redrive_policy::Moment;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn evaluate(text: &str) -> Result<Value, Fault> {
    let data = json!({
        "n": 5, "half": 0.5, "text": "héllo", "list": [1, 2, 3], "map": { "b": 2, "a": 1 }, "none": null, "yes": true,
    });
    let expression = Expression::read(text).map_err(|fault| Fault::Evaluation(format!("syntax: {}", fault.message)))?;
    let values = BTreeMap::from([("vars", Val::of(&data))]);
    let (pin, now) = (Moment::from_micros(1_767_225_600_000_000), Moment::from_micros(1_767_225_601_500_000));
    expression.evaluate(&Roots { values, pin, now })
}

fn gives(cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        assert_eq!(evaluate(text).as_ref(), Ok(expected), "{text}");
    }
}

fn faults(cases: &[&str]) {
    for text in cases {
        let found = evaluate(text);
        assert!(
            matches!(&found, Err(Fault::Evaluation(message)) if !message.starts_with("syntax")),
            "{text}: {found:?}"
        );
    }
}

fn unrepresentable(cases: &[&str]) {
    for text in cases {
        let found = evaluate(text);
        assert!(matches!(found, Err(Fault::Unrepresentable(_))), "{text}: {found:?}");
    }
}

fn refused(cases: &[&str]) {
    for text in cases {
        assert!(Expression::read(text).is_err(), "{text}");
    }
}

#[test]
fn literals() {
    gives(&[
        ("null", json!(null)),
        ("true", json!(true)),
        ("0x1F", json!(31)),
        ("7u", json!(7)),
        ("1.5e3", json!(1500)),
        (".5", json!(0.5)),
        ("-9223372036854775808 < 0", json!(true)),
        (r#"'a\n\x41\u00e9\101'"#, json!("a\nAéA")),
        (r#"r'a\n'"#, json!("a\\n")),
        ("'''a\n'b' '''", json!("a\n'b' ")),
        ("size(b'h\u{e9}')", json!(3)),
        ("[1, 'a', [],]", json!([1, "a", []])),
        ("{'a': {'b': 1}}", json!({ "a": { "b": 1 } })),
        ("1 // a comment", json!(1)),
    ]);
    refused(&["", "1 +", "'a", "9223372036854775808", "99999999999999999999u", "1e", "{1}", "[", "a b", "@", "'\\q'"]);
    refused(&["if", "for", "x.y.", "f(", "(1", "'\n'", "0x", "\\u12"]);
    faults(&["{'a': 1, 'a': 2}", "{1.5: 1}", "{1: 1, 1u: 2}"]);
}

#[test]
fn operators() {
    gives(&[
        ("1 + 2 * 3 - 4 / 3", json!(6)),
        ("-(2 - 5) % 2", json!(1)),
        ("-7 / 2", json!(-3)),
        ("vars.n / 2.0", json!(2.5)),
        ("vars.n == 5 && vars.n == 5.0 && vars.n == 5u", json!(true)),
        ("vars.n < 6 && 6 > vars.n && 4u <= vars.n && vars.n >= 5", json!(true)),
        ("'a' + 'b' < 'b'", json!(true)),
        ("[1] + vars.list", json!([1, 1, 2, 3])),
        ("b'a' + b'b' == b'ab'", json!(true)),
        ("1 == '1' || null == false", json!(false)),
        ("[1, 2] == [1.0, 2u] && {'a': 1} == {'a': 1.0} && {'a': 1} != {'b': 1}", json!(true)),
        ("2 in vars.list && 'a' in vars.map && !('c' in vars.map)", json!(true)),
        ("vars.list[0] + vars.list[2]", json!(4)),
        ("vars.list[vars.list[0] == 1.0 ? 2 : 0]", json!(3)),
        ("vars.list[1.0]", json!(2)),
        ("vars.map['a'] + vars.map.b", json!(3)),
        ("{1: 'x'}[1u]", json!("x")),
        ("true ? 1 : vars.missing", json!(1)),
        ("!false", json!(true)),
        ("9007199254740993 > 9007199254740992.0", json!(true)),
        ("double('NaN') == double('NaN') || double('NaN') < 1.0", json!(false)),
    ]);
    faults(&[
        "1 + vars.n",
        "1 + 1u",
        "1 + 'a'",
        "5 / 0",
        "5 % 0",
        "5u / 0u",
        "5.0 % 2.0",
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "0u - 1u",
        "9223372036854775807 * 2",
        "!1",
        "-'a'",
        "1 < 'a'",
        "[1] < [2]",
        "vars.list[3]",
        "vars.list[-1]",
        "vars.list[0.5]",
        "vars.list['a']",
        "vars.map['c']",
        "vars.map.c",
        "vars.n.x",
        "other",
        "1 in 2",
        "1 ? 2 : 3",
        "null + null",
    ]);
}

#[test]
fn guards_absorb_faults() {
    gives(&[
        ("false && vars.missing", json!(false)),
        ("vars.missing && false", json!(false)),
        ("true || vars.missing", json!(true)),
        ("vars.missing || true", json!(true)),
        ("has(vars.n) && !has(vars.missing)", json!(true)),
        ("has(vars.none)", json!(true)),
    ]);
    faults(&["true && vars.missing", "vars.missing || false", "1 && true", "has(vars.n.x)", "has(vars.missing.x)"]);
    refused(&["has(vars)", "has(1)", "has()", "has(vars.n, 1)"]);
}

#[test]
fn macros() {
    gives(&[
        ("vars.list.all(x, x > 0)", json!(true)),
        ("vars.list.all(x, x > 1)", json!(false)),
        ("vars.list.exists(x, x > 2)", json!(true)),
        ("vars.list.exists_one(x, x > 2) && !vars.list.existsOne(x, x > 1)", json!(true)),
        ("vars.list.map(x, x * 2.0)", json!([2, 4, 6])),
        ("vars.list.map(x, x > 1, x * 2.0)", json!([4, 6])),
        ("vars.list.filter(x, x != 2)", json!([1, 3])),
        ("vars.map.map(k, k + 'x')", json!(["ax", "bx"])),
        ("{'z': 1, 'a': 2}.map(k, k)", json!(["a", "z"])),
        ("vars.list.map(x, vars.list.map(y, x * y))[2][2]", json!(9)),
        ("vars.list.exists(x, x == 1 || vars.missing)", json!(true)),
        ("[].all(x, false)", json!(true)),
        ("vars.list.filter(vars, vars == 2)", json!([2])),
    ]);
    faults(&["vars.list.all(x, 1)", "vars.n.all(x, true)", "vars.list.map(x, x.y)", "vars.list.exists(x, x.y)"]);
    refused(&["vars.list.all(x)", "vars.list.map(x.y, 1)", "vars.list.filter(x, y, z)", "vars.list.reduce(x, 1)"]);
}

#[test]
fn functions_of_core_cel() {
    gives(&[
        ("size('héllo') + 'ab'.size() + size([1]) + size(vars.map) + size(b'abc')", json!(13)),
        ("vars.text.contains('llo') && vars.text.startsWith('h') && vars.text.endsWith('o')", json!(true)),
        ("vars.text.matches('^h.l+o$') && matches('abc', 'b') && !'abc'.matches('^b')", json!(true)),
        ("'abc'.matches('a' + 'b')", json!(true)),
        ("[bool('true'), bool('0'), bool(true)]", json!([true, false, true])),
        ("[int('7'), int(7.9), int(-7.9), int(7u), int(timestamp('1970-01-01T00:01:00Z'))]", json!([7, 7, -7, 7, 60])),
        ("[uint('7'), uint(7.9), uint(7)]", json!([7, 7, 7])),
        ("[double('1.5'), double(2), double(3u)]", json!([1.5, 2, 3])),
        (
            "[string(1), string(1u), string(1.5), string(true), string(b'a'), string('a')]",
            json!(["1", "1", "1.5", "true", "a", "a"]),
        ),
        ("bytes('a') == b'a' && dyn(1) == 1", json!(true)),
        ("type(1) == int && type(vars.n) == double && type('a') == string && type(null) == null_type", json!(true)),
        (
            "type([]) == list && type({}) == map && type(1u) == uint && type(b'') == bytes && type(int) == type",
            json!(true),
        ),
        ("type(duration('1s')) == google.protobuf.Duration && type(now()) == google.protobuf.Timestamp", json!(true)),
        ("string(duration('1h30m1.5s'))", json!("5401.5s")),
        ("string(duration('-250ms') + duration('1us2ns'))", json!("-0.249998998s")),
        ("string(timestamp('2026-01-02T03:04:05.678+01:00'))", json!("2026-01-02T02:04:05.678Z")),
        ("string(timestamp('2026-01-01T00:00:00Z') + duration('24h') - duration('1s'))", json!("2026-01-01T23:59:59Z")),
        ("string(timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z'))", json!("86400s")),
        ("timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-01T00:00:00.001Z')", json!(true)),
        ("duration('1m') > duration('59s') && -duration('1s') == duration('-1s')", json!(true)),
    ]);
    faults(&[
        "size(1)",
        "'a'.contains(1)",
        "'a'.matches('(' + '')",
        "bool('yes')",
        "int('x')",
        "int(1e30)",
        "uint(-1)",
        "double('x')",
        "string([])",
        "string(b'\\xff')",
        "bytes(1)",
        "duration('1d')",
        "duration('')",
        "timestamp('x')",
        "timestamp('2026-02-30T00:00:00Z')",
        "timestamp('2026-01-01 00:00:00Z')",
        "timestamp('2026-01-01T00:00:00')",
        "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
    ]);
    refused(&["size()", "size(1, 2)", "upper('a')", "'a'.upper()", "contains('a', 'b')", "'a'.matches('(')", "now(1)"]);
}

#[test]
fn parts_of_times() {
    let at = "timestamp('2026-03-01T23:04:05.678Z')";
    for (call, expected) in [
        ("getFullYear()", 2026),
        ("getMonth()", 2),
        ("getDate()", 1),
        ("getDayOfMonth()", 0),
        ("getDayOfWeek()", 0),
        ("getDayOfYear()", 59),
        ("getHours()", 23),
        ("getMinutes()", 4),
        ("getSeconds()", 5),
        ("getMilliseconds()", 678),
        ("getHours('Europe/Berlin')", 0),
        ("getDate('+01:00')", 2),
        ("getHours('-08:00')", 15),
    ] {
        assert_eq!(evaluate(&format!("{at}.{call}")), Ok(json!(expected)), "{call}");
    }
    for (call, expected) in
        [("getHours()", 1), ("getMinutes()", 90), ("getSeconds()", 5400), ("getMilliseconds()", 5_400_250)]
    {
        assert_eq!(evaluate(&format!("duration('1h30m0.25s').{call}")), Ok(json!(expected)), "{call}");
    }
    faults(&["now().getHours('Nowhere/Land')", "now().getHours(1)", "duration('1s').getDate()", "'a'.getHours()"]);
}

#[test]
fn functions_of_mwl() {
    gives(&[
        ("toJson({'b': [1.0, 1.5, null], 'a': 'é\"\\n'})", json!("{\"a\":\"é\\\"\\n\",\"b\":[1,1.5,null]}")),
        (
            "toJson([1e21, 1e-7, 123456789012345680000.0, 0.000001, -0.0])",
            json!("[1e+21,1e-7,123456789012345680000,0.000001,0]"),
        ),
        ("fromJson('{\"a\": [1, null]}').a[0] + 1.0", json!(2)),
        ("durationToIso8601(duration('26h'))", json!("PT26H")),
        ("durationToIso8601(duration('90m0.5s'))", json!("PT1H30M0.5S")),
        ("durationToIso8601(duration('-30s'))", json!("-PT30S")),
        ("durationToIso8601(duration('0s'))", json!("PT0S")),
        ("durationFromIso8601('P1DT2H') == duration('26h')", json!(true)),
        (
            "durationFromIso8601('-PT1.5S') == duration('-1.5s') && durationFromIso8601('P1W') == duration('168h')",
            json!(true),
        ),
        ("string(now())", json!("2026-01-01T00:00:00Z")),
        ("string(wallTime() - now())", json!("1.5s")),
    ]);
    faults(&[
        "fromJson('{')",
        "fromJson('{\"a\":1,\"a\":2}')",
        "fromJson(1)",
        "durationFromIso8601('1s')",
        "durationToIso8601('PT1S')",
    ]);
}

#[test]
fn results_that_json_has_not() {
    unrepresentable(&[
        "5.0 / 0.0",
        "double('NaN')",
        "9007199254740993",
        "18446744073709551615u",
        "b'a'",
        "now()",
        "duration('1s')",
        "type(1)",
        "{1: 2}",
        "[duration('1s')]",
        "toJson(now())",
    ]);
    gives(&[
        ("9007199254740992", json!(9_007_199_254_740_992_i64)),
        ("double(9007199254740993)", json!(9_007_199_254_740_992_i64)),
        ("1e300", json!(1e300)),
        ("-0.0", json!(0)),
    ]);
}

#[test]
fn the_budget_ends_what_would_not_end() {
    let nested = "vars.list.map(a, vars.list.map(b, vars.list.map(c, vars.list.map(d, vars.list.map(e, vars.list.map(f, \
                  vars.list.map(g, vars.list.map(h, vars.list.map(i, vars.list.map(j, vars.list.map(k, vars.list.map(l, \
                  vars.list.map(m, 1)))))))))))))";
    faults(&[nested, &format!("[[{nested}]].exists(x, true || x == x)")]);
    let doubling = format!("{}'aaaaaaaaaaaaaaaa'{}", "[".repeat(30), "].map(x, x + x)[0]".repeat(30));
    faults(&[&doubling]);
}

#[test]
fn deep_expressions_are_refused_and_do_not_overflow() {
    refused(&[&"(".repeat(50_000), &"-".repeat(50_000), &"[".repeat(50_000), &"!".repeat(30_000)]);
    refused(&[&vec!["1"; 10_000].join(" + "), &"a.b".repeat(20_000), &"true ? 1 : ".repeat(1_000)]);
    assert_eq!(evaluate(&vec!["1"; 100].join(" + ")), Ok(json!(100)));
}

#[test]
fn a_string_is_an_expression_where_one_pair_of_delimiters_is_around_all_of_it() {
    for (text, body) in [
        ("{{ a }}", Some(" a ")),
        ("{{a}}", Some("a")),
        ("{{ {'a': {'b': 1}} }}", Some(" {'a': {'b': 1}} ")),
        ("{{ '}} {{' }}", Some(" '}} {{' ")),
        ("{{ a }} + {{ b }}", None),
        ("{{ a }} is text", None),
        (" {{ a }}", None),
        ("{{ a }", None),
        ("{{}}", Some("")),
        ("a", None),
    ] {
        assert_eq!(embedded(text), body, "{text}");
    }
}
