package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

const (
	examplesShown = 3
	// soundOf4 of four values that are there have to be of a type, or else the guess is string.
	soundOf4 = 3
)

// A sample is the hashes that a guess is made from: the values of each field. One goroutine.
type sample struct {
	hashes int
	fields map[string][]string
}

// add counts a value of a field.
func (s *sample) add(field, value string) {
	if s.fields == nil {
		s.fields = make(map[string][]string)
	}
	s.fields[field] = append(s.fields[field], value)
}

// writeTable writes the table of an entity in the short form, with a comment on each column.
func (s *sample) writeTable(w io.Writer, entity string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "[%s]\n", entity)
	if bad := s.leaveOut(); len(s.fields) == 0 {
		return fmt.Errorf("no field of the hashes has a name that a table takes: %d have others, such as %s", len(bad), shortly(bad[0]))
	} else if len(bad) > 0 {
		fmt.Fprintf(&out, "# Left out: %d fields with names that no table takes, such as %s.\n", len(bad), shortly(bad[0]))
	}
	taken := map[string]bool{"id": true} // the row id
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		values := slices.Sorted(slices.Values(s.fields[field])) // SCAN has no order.
		name := columnName(field, entity, taken)
		taken[name] = true
		guessed, remark := guess(values)
		typ := guessed.String()
		if n := vectorDims(values); n > 0 {
			typ, remark = fmt.Sprintf("vector(%d)", n), ""
		} else if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			remark = "not all values are text"
		}
		line := fmt.Sprintf("%s = %q", name, typ)
		if name != field {
			line = fmt.Sprintf("%s = {type = %q, field = %s}", name, typ, basicString(field))
		}
		share := fmt.Sprintf("null in %d of %d", s.hashes-len(values), s.hashes)
		var shown []string
		for _, v := range values {
			if text := shortly(v); !slices.Contains(shown, text) {
				shown = append(shown, text)
			}
			if len(shown) == examplesShown {
				break
			}
		}
		remarks := []string{share}
		if remark != "" {
			remarks = append(remarks, remark)
		}
		fmt.Fprintf(&out, "%s # %s; %s\n", line, strings.Join(remarks, "; "), strings.Join(shown, ", "))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// leaveOut removes the fields whose names no table can have, or not as they are, and returns them in order.
func (s *sample) leaveOut() (bad []string) {
	for field := range s.fields {
		if !registry.ValidField(field) {
			bad = append(bad, field)
			delete(s.fields, field)
		}
	}
	slices.Sort(bad)
	return bad
}

// shortly quotes a value for a comment. Of what is not text it shows the length.
func shortly(v string) string {
	if !utf8.ValidString(v) {
		return fmt.Sprintf("%d bytes", len(v))
	}
	return errtext.Quote(v)
}

// basicString writes a field's name as TOML.
func basicString(s string) string {
	text, _ := json.Marshal(s) // A string always is JSON, and TOML reads the escapes of JSON.
	return string(text)
}

var notName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// wordOf makes a name for tables of a text; other stands for a text that has none.
func wordOf(text, other string) string {
	word := strings.Trim(notName.ReplaceAllString(text, "_"), "_")
	if word != "" && '0' <= word[0] && word[0] <= '9' {
		word = "_" + word
	}
	return cmp.Or(word, other)
}

// entityName makes the name of an entity's table of a text. The table key would have columns in the long form,
// and the reader of TOML takes capitals for it, too.
func entityName(text string) string {
	name := wordOf(text, "row")
	if strings.EqualFold(name, "key") {
		name += "_row"
	}
	return name
}

// columnName returns the name of a field's column, which none has yet.
func columnName(field, entity string, taken map[string]bool) string {
	name := field
	if notName.MatchString(field) || wordOf(field, "") != strings.Trim(field, "_") {
		name = wordOf(field, "field")
	}
	if !taken[name] {
		return name
	}
	if name = entity + "_" + name; !taken[name] {
		return name
	}
	for n := 2; ; n++ {
		if numbered := name + "_" + strconv.Itoa(n); !taken[numbered] {
			return numbered
		}
	}
}

// vectorDims returns how many numbers each value has, if all have as many and may be vectors: lists with a fraction somewhere, or floats of 4 bytes
// that are not text. Otherwise it returns 0.
func vectorDims(values []string) int {
	first := strings.Trim(values[0], "[]")
	n := strings.Count(first, ",") + 1
	may := slices.ContainsFunc(values, func(v string) bool { return strings.ContainsAny(v, ".eE") })
	if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
		n, may = len(values[0])/4, true
	}
	if !may || n < 2 || n > registry.VectorDimsMax {
		return 0
	}
	b := rowset.NewVectorBuilder(registry.IDKey, n, len(values))
	for _, v := range values {
		if !b.AppendText([]byte(v)) {
			return 0
		}
	}
	return n
}

// guess returns the type that most of the values have, and what makes one doubt it.
func guess(values []string) (t registry.Type, remark string) {
	all := func(is func(string) bool) bool {
		return !slices.ContainsFunc(values, func(v string) bool { return !is(v) })
	}
	if slices.ContainsFunc(values, leadsWithZero) {
		return registry.String, "a number begins with 0, so this may be a code"
	}
	if all(func(v string) bool { return v == "true" || v == "false" }) {
		return registry.Bool, ""
	}
	if all(func(v string) bool { return v == "0" || v == "1" }) && slices.Contains(values, "0") && slices.Contains(values, "1") {
		return registry.Int, "only 0 and 1: bool?"
	}
	for _, candidate := range []struct {
		t  registry.Type
		is func(string) bool
	}{
		{registry.Int, func(v string) bool { _, ok := rowset.ParseInt([]byte(v)); return ok }},
		{registry.Float, func(v string) bool { _, ok := rowset.ParseFloat([]byte(v)); return ok }},
		{registry.StringSet, func(v string) bool { return json.Unmarshal([]byte(v), new([]string)) == nil && v[0] == '[' }},
	} {
		bad, first := 0, ""
		for _, v := range values {
			if !candidate.is(v) {
				if bad++; bad == 1 {
					first = v
				}
			}
		}
		switch {
		case bad == 0:
			return candidate.t, ""
		case 4*(len(values)-bad) >= soundOf4*len(values):
			// Integers are floats, too: these may explain the rest.
			if candidate.t == registry.Int {
				continue
			}
			return candidate.t, fmt.Sprintf("%d of %d will be null, as %s is not a %s", bad, len(values), errtext.Quote(first), candidate.t)
		}
	}
	lists := 0
	for _, v := range values {
		if strings.Contains(v, ",") {
			lists++
		}
	}
	if 4*lists >= len(values) && all(isList) {
		return registry.StringSet, "commas without blanks: string?"
	}
	return registry.String, ""
}

// leadsWithZero reports whether a text is digits that a number would not keep: "007".
func leadsWithZero(v string) bool {
	if len(v) < 2 || v[0] != '0' {
		return false
	}
	_, ok := rowset.ParseInt([]byte(v))
	return ok
}

// isList reports whether a text may be words between commas.
func isList(v string) bool { return !strings.ContainsAny(v, " \t\r\n") && v != "" }
