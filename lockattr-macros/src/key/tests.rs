use super::*;

fn right(template: &str) -> Template {
    let (parsed, wrong) = Template::parse(template);
    assert!(wrong.is_empty(), "{template}: {wrong:?}");
    parsed
}

fn texts(template: &str) -> Vec<String> {
    right(template).texts
}

fn wrong(template: &str) -> String {
    Template::parse(template).1.join("\n")
}

#[test]
fn reads_texts_and_placeholders() {
    let template = right("{{u:{id}}}:{self.a.0:03}-{1}");
    assert_eq!(template.texts, ["{u:", "}:", "-", ""]);
    let roots: Vec<_> = template.placeholders.iter().map(|placeholder| placeholder.root.clone()).collect();
    assert_eq!(roots, [Root::Name("id".to_owned()), Root::SelfValue, Root::Position(1)]);
    assert_eq!(template.placeholders[1].fields, [Field::Name("a".to_owned()), Field::Index(0)]);
    assert_eq!(template.placeholders[1].spec, "03");
    assert_eq!(template.separators(), "-}");
}

#[test]
fn a_text_alone_is_a_template() {
    assert_eq!(texts("nightly"), ["nightly"]);
    assert_eq!(texts("{{}}"), ["{}"]);
    assert_eq!(texts("größe:{größe}"), ["größe:", ""]);
}

#[test]
fn every_mistake_is_named() {
    for (template, says) in [
        ("", "empty"),
        ("a\n", "control character"),
        ("a:{id", "not closed"),
        ("a:{id{b}", "not closed"),
        ("a:id}", "`}` without `{`"),
        ("{}", "names nothing"),
        ("{:03}", "names nothing"),
        ("{ id }", "write `{id}`"),
        ("{r#type}", "write `{type}`"),
        ("{ids[0]}", "use an expression"),
        ("{id!r}", "is not a name or a field path"),
        ("{a..b}", "is not a name or a field path"),
        ("{a.}", "is not a name or a field path"),
        ("{Self}", "is not a name or a field path"),
        ("{00}", "is not a name or a field path"),
        ("{99999999999}", "is not a name or a field path"),
        ("{a}{b}", "put a separator between them"),
        ("{a}%{b}", "starts with `%`"),
        ("{id:w$}", "width from another argument"),
        ("{id:.*}", "width from another argument"),
        ("{id:?}", "may change between builds"),
        ("{id:#x?}", "may change between builds"),
        ("{id:p}", "address"),
        ("{id:zz}", "unknown format trait `zz`"),
        ("{id:.}", "no number after the `.`"),
        ("{id:99999}", "above 65535"),
    ] {
        assert!(wrong(template).contains(says), "{template}: {}", wrong(template));
    }
}

#[test]
fn all_mistakes_of_one_template_are_collected() {
    let (template, wrong) = Template::parse("{ a }:{b:?}{c}:{d");
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    assert_eq!(template.placeholders.len(), 1);
}

#[test]
fn specs_of_std_are_allowed() {
    for spec in ["", "5", "<5", "*<5", "^+#08.3", ">", "-", "#x", "e", ".2", "é^10"] {
        texts(&format!("{{x:{spec}}}"));
    }
}
