package registry

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shapeOf returns the faults that checkShape reports, one per line.
func shapeOf(text string, rows any) string {
	var faults []string
	checkShape([]byte(text), rows, func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d: ", line)+fmt.Sprintf(format, args...))
	})
	return strings.Join(faults, "\n")
}

// newShape returns a pointer to the struct of the largest of the three tables, with the types of field that the table
// itself does not have.
func newShape() any {
	return reflect.New(reflect.StructOf([]reflect.StructField{
		newEndpointRows().Elem().Type().Field(0),
		{Name: "Weight", Type: reflect.TypeFor[float64](), Tag: `toml:"weight"`},
		{Name: "Any", Type: reflect.TypeFor[any](), Tag: `toml:"any"`},
	})).Interface()
}

func TestShape(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"Good", "[[endpoint]]\nid = \"x\"\nembedded = true\npolicy = {connections = 1}\n[[endpoint]]\n[endpoint.policy]\ndatabase = 2", ""},
		{"InlineTables", `endpoint = [{id = "x"}, {policy.database = 1}]`, ""},
		{"CaseIsIgnored", "[[Endpoint]]\nID = \"x\"", ""},
		{"AnIntegerIsANumber", "weight = 1", ""},
		{"EachFaultIsReported", "weight = true\n[[endpoint]]\nid = 1\n\nport = \"1\"\ncolour = 2",
			"1: weight must be a number, not a boolean\n3: endpoint.id must be a string, not an integer\n" +
				"5: endpoint.port must be an integer, not a string\n6: unknown field endpoint.colour"},
		{"CaseOfTheText", "[[endpoint]]\nID = 1", "2: endpoint.ID must be a string, not an integer"},
		{"FieldOfAString", "[[endpoint]]\nid.x = 1", "2: endpoint.id must be a string, not a table"},
		{"UnknownTableOnce", "[other]\na = 1\nb = 2\n[[endpoint]]\nid = 1",
			"1: unknown field other\n5: endpoint.id must be a string, not an integer"},
		{"UnknownPath", "[[endpoint]]\na.b = 1", "2: unknown field endpoint.a.b"},
		{"MultilineInlineTable", "[[endpoint]]\npolicy = {\n connections = 1,\n database = \"2\"\n}",
			"4: endpoint.policy.database must be an integer, not a string"},
		{"MixedArray", "endpoint = [{}, 1, []]",
			"1: endpoint must be an array of tables, not an integer\n1: endpoint must be an array of tables, not an array"},
		{"AnyTakesAll", "any = 1\n[[endpoint]]\nid = 1", "3: endpoint.id must be a string, not an integer"},
		{"AnyTakesTables", "[any.x]\ny = 1\n[any.z]\n[[endpoint]]\nid = 1", "5: endpoint.id must be a string, not an integer"},
		{"AnyTakesPaths", "any.x.y = 1\nany.z = [{}]\nweight = true", "3: weight must be a number, not a boolean"},
		{"Date", "weight = 1979-05-27", "1: weight must be a number, not a date or time"},
		{"SyntaxAfterAFault", "weight = \"\"\nweight", "1: weight must be a number, not a string\n2: expected '=' after key"},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, shapeOf(c.text, newShape())) })
	}
}

// FuzzShape compares checkShape with the decoder. A table without faults is decoded, unless the
// text breaks the language itself. A table with a fault is never decoded.
func FuzzShape(f *testing.F) {
	for _, text := range []string{
		"[[endpoint]]\nid = \"x\"\nport = 1\n[endpoint.policy]\nconnections = 2", "endpoint = [{policy = {database = 1}}, {}]",
		"weight = nan", "weight = [1]", "endpoint.id = 1", "[endpoint]\n'id' = \"\"\"a\nb\"\"\"", "\"\\u0065ndpoint\" = 1", "a", "[[", "id = {", "# \xff",
		"any = [1, {a = nan}]", "[any]\nx = 1\n[any.y]", "[[any]]\n[any.x]", "any.x = 1\n[any]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults := shapeOf(text, newShape())
		dec := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
		err := dec.Decode(newShape())
		if faults != "" {
			require.Error(t, err, "only checkShape finds: %s", faults)
			return
		}
		var tree map[string]any
		if toml.Unmarshal([]byte(text), &tree) == nil {
			require.NoError(t, err)
		}
	})
}
