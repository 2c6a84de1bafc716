package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// write writes a template with each mark as its name in angle brackets.
func write(t *plan.KeyTemplate) string {
	var b strings.Builder
	side := func(parts []plan.TemplatePart) {
		for _, part := range parts {
			switch {
			case part.User:
				b.WriteString("<user>")
			case part.Param != nil:
				b.WriteString("<" + part.Param.Name + ">")
			default:
				b.WriteString(part.Text)
			}
		}
	}
	side(t.Before)
	if t.PerRow() {
		b.WriteString("<id>")
		side(t.After)
	}
	return b.String()
}

func TestKeyTemplates(t *testing.T) {
	reg := testRegistry(t)
	for text, want := range map[string]string{
		"inbox:{user}":                    "inbox:<user>",
		"sim:{id}":                        "sim:<id>",
		"{id}":                            "<id>",
		"top":                             "top",
		"a:{user}:b:{id}:c:{user}":        "a:<user>:b:<id>:c:<user>",
		"pop:{blocklist_regex}":           "pop:<blocklist_regex>",
		"{{u:{user}}}":                    "{u:<user>}",
		"{{}}{{{{{id}}}":                  "{}{{<id>}",
		"é:{id}\n":                        "é:<id>\n",
		strings.Repeat("{user}", 16):      strings.Repeat("<user>", 16),
		"{id}" + strings.Repeat("x", 508): "<id>" + strings.Repeat("x", 508),
	} {
		parsed, err := plan.ParseKeyTemplate(text, reg)
		require.NoError(t, err, text)
		assert.Equal(t, want, write(parsed))
		assert.Equal(t, strings.Contains(want, "<id>"), parsed.PerRow())
	}
	for text, want := range map[string]string{
		"":                           "must not be empty",
		"a:{":                        "a single {",
		"a:{id":                      "a single {",
		"a:}":                        "a single }",
		"a:{}":                       "{} is neither {user}, {id} nor",
		"a:{usr}":                    "the nearest is {user}",
		"a:{id}:{id}":                "has {id} twice",
		"a:{esr_cutoff}":             "has type float; a key takes an int, a string or a bool",
		strings.Repeat("x", 513):     "has 513 bytes, more than 512",
		strings.Repeat("{user}", 17): "more than 16 marks",
	} {
		_, err := plan.ParseKeyTemplate(text, reg)
		assert.ErrorContains(t, err, want, text)
	}
}

// FuzzKeyTemplate: a template parses or the error is one line, and a template without marks stands for
// its own text.
func FuzzKeyTemplate(f *testing.F) {
	for _, text := range []string{"inbox:{user}", "sim:{id}", "{{", "}}", "{{{id}}}", "a{", "a}b", "{weight}", "{\n}", strings.Repeat("{", 600)} {
		f.Add(text)
	}
	reg := testRegistry(f)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := plan.ParseKeyTemplate(text, reg)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 1000)
			return
		}
		if !strings.ContainsAny(text, "{}") {
			require.Equal(t, text, write(parsed))
		}
		again, err := plan.ParseKeyTemplate(text, reg)
		require.NoError(t, err)
		require.Equal(t, parsed, again)
	})
}
