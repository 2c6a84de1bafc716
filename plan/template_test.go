package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// write writes a template with each mark as its name in angle brackets.
func write(t *plan.KeyTemplate) string {
	var b strings.Builder
	for _, part := range slices.Concat(t.Before, t.Row, t.After) {
		switch {
		case part.User:
			b.WriteString("<user>")
		case part.Param != nil:
			b.WriteString("<" + part.Param.Name + ">")
		case part.Column != nil:
			b.WriteString("<" + part.Column.Name + ">")
		default:
			b.WriteString(part.Text)
		}
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
		for _, columns := range []bool{false, true} {
			parsed, err := plan.ParseKeyTemplate(text, reg, columns)
			require.NoError(t, err, text)
			assert.Equal(t, want, write(parsed))
			assert.Equal(t, strings.Contains(want, "<id>"), parsed.PerRow())
			assert.Empty(t, parsed.Columns())
		}
	}
	for text, want := range map[string]string{
		"":                           "must not be empty",
		"a:{":                        "a single {",
		"a:{id":                      "a single {",
		"a:}":                        "a single }",
		"a:{}":                       "{} is neither {user}, {id}",
		"a:{usr}":                    "did you mean {user}?",
		"a:{id}:{id}":                "has {id} twice",
		"a:{esr_cutoff}":             "has type float; a key takes an int, a string or a bool",
		strings.Repeat("x", 513):     "has 513 bytes, more than 512",
		strings.Repeat("{user}", 17): "more than 16 marks",
	} {
		for _, columns := range []bool{false, true} {
			_, err := plan.ParseKeyTemplate(text, reg, columns)
			assert.ErrorContains(t, err, want, text)
		}
	}
}

// The row's part of the key begins at its first mark and ends at its last one.
func TestKeyTemplatesOfColumns(t *testing.T) {
	tables := registrytest.Tables{Params: registrytest.Param(1, "country", "string", registrytest.Nullable, "context = true"), Keys: registrytest.ID}
	for i, key := range [][2]string{{"category", "string"}, {"author_id", "int"}, {"country", "string"}, {"price", "float"}, {"user", "int"}} {
		tables.Keys += registrytest.Key(10+i, key[0], key[1], registrytest.Nullable)
	}
	reg := tables.Load()
	for text, want := range map[string]struct {
		before, row, after string
		columns            []registry.KeyID
	}{
		"cat:{category}":                        {before: "cat:", row: "<category>", columns: []registry.KeyID{10}},
		"stat:{user}:{category}":                {before: "stat:<user>:", row: "<category>", columns: []registry.KeyID{10}},
		"{Key.author_id}":                       {row: "<author_id>", columns: []registry.KeyID{11}},
		"a:{id}:{user}-{category}:{country}":    {before: "a:", row: "<id>:<user>-<category>", after: ":<country>", columns: []registry.KeyID{10}},
		"{Key.country}{category}{Key.country}x": {row: "<country><category><country>", after: "x", columns: []registry.KeyID{12, 10, 12}},
		"top:{country}":                         {before: "top:<country>"}, // the field of the context
		"u:{Key.user}:{user}":                   {before: "u:", row: "<user>", after: ":<user>", columns: []registry.KeyID{14}},
	} {
		parsed, err := plan.ParseKeyTemplate(text, reg, true)
		require.NoError(t, err, text)
		for _, side := range []struct {
			want  string
			parts []plan.TemplatePart
		}{{want.before, parsed.Before}, {want.row, parsed.Row}, {want.after, parsed.After}} {
			assert.Equal(t, side.want, write(&plan.KeyTemplate{Before: side.parts}), text)
		}
		assert.Equal(t, want.columns, parsed.Columns(), text)
		assert.Equal(t, want.row != "", parsed.PerRow(), text)
	}
	for text, want := range map[string]string{
		"a:{price}":     "{price} is a column of type float; a key takes an int or a string",
		"a:{Key.prise}": "{Key.prise} is neither {user}, {id}, a field of the context nor a column; did you mean {Key.price}?",
		"a:{categry}":   "did you mean {category}?",
		"{id}{Key.id}":  "has {id} twice",
	} {
		_, err := plan.ParseKeyTemplate(text, reg, true)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := plan.ParseKeyTemplate("a:{category}", reg, false)
	assert.EqualError(t, err, "{category} is a column, and this key takes none")
}

// FuzzKeyTemplate: a template parses, or the error is one line. A template without marks
// stands for its own text. A template that also parses without columns means the same there.
func FuzzKeyTemplate(f *testing.F) {
	for _, text := range []string{"inbox:{user}", "sim:{id}", "{{", "}}", "{{{id}}}", "a{", "a}b", "{weight}", "{\n}", strings.Repeat("{", 600),
		"stat:{user}:{country}", "{Key.country}{{{id}-{title}}}", "{Key.", "{Key.}", "{country}{country}"} {
		f.Add(text)
	}
	reg := testRegistry(f)
	f.Fuzz(func(t *testing.T, text string) {
		var parsed [2]*plan.KeyTemplate
		for i, columns := range []bool{false, true} {
			var err error
			if parsed[i], err = plan.ParseKeyTemplate(text, reg, columns); err != nil {
				require.NotContains(t, err.Error(), "\n")
				require.Less(t, len(err.Error()), 1000)
				continue
			}
			if !strings.ContainsAny(text, "{}") {
				require.Equal(t, text, write(parsed[i]))
			}
			if row := parsed[i].Row; len(row) > 0 {
				require.NotNil(t, row[0].Column)
				require.NotNil(t, row[len(row)-1].Column)
			}
			for _, part := range slices.Concat(parsed[i].Before, parsed[i].After) {
				require.Nil(t, part.Column)
			}
			again, err := plan.ParseKeyTemplate(text, reg, columns)
			require.NoError(t, err)
			require.Equal(t, parsed[i], again)
		}
		if parsed[0] != nil {
			require.Equal(t, parsed[0], parsed[1])
		}
	})
}
