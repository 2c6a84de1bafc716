package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// fieldMax is the longest name of a Redis field, in bytes. A longer one is surely a mistake.
const fieldMax = 256

// ValidField reports whether a table takes a text as the name of a field of Redis: 1 to 256 bytes of UTF-8 without control characters.
func ValidField(name string) bool {
	return name != "" && len(name) <= fieldMax && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// keyRow is one [[key]], or a column in the table of an entity.
type keyRow struct {
	ID       *int64  `toml:"id"`
	Name     string  `toml:"name"`
	Type     string  `toml:"type"`
	Nullable bool    `toml:"nullable"`
	Writable bool    `toml:"writable"`
	Private  bool    `toml:"private"`
	Field    *string `toml:"field"`
	Default  any     `toml:"default"`
}

// columnRow is a column in the table of an entity, whose key is its name.
type columnRow struct {
	ID       *int64  `toml:"id"`
	Type     string  `toml:"type"`
	Nullable *bool   `toml:"nullable"`
	Writable *bool   `toml:"writable"`
	Private  bool    `toml:"private"`
	Field    *string `toml:"field"`
	Default  any     `toml:"default"`
}

func (r *columnRow) setType(name string) { r.Type = name }

func (r *columnRow) long(name string) keyRow {
	unlessFalse := func(given *bool) bool { return given == nil || *given }
	return keyRow{r.ID, name, r.Type, unlessFalse(r.Nullable), unlessFalse(r.Writable), r.Private, r.Field, r.Default}
}

func (l *loader) keys(r *Registry) {
	const file = "keys.toml"
	var table struct {
		Key    []keyRow             `toml:"key"`
		Entity map[string]columnRow `toml:"*"`
	}
	text, ok := l.decode(file, &table)
	if !ok {
		return
	}
	e := newEntries[int64](l, file, "key")
	r.keyByID, r.keyByName = make(map[KeyID]*Key), make(map[string]*Key)
	add := func(label string, row *keyRow) {
		key := &Key{Name: row.Name, Nullable: row.Nullable, Writable: row.Writable, Private: row.Private}
		key.Type, key.Dims = l.typeOf(file, label, row.Type, Int, Float, String, Bool, StringSet, Vector, FeatureBundle)
		l.numericID(file, label, row.ID)
		if row.ID == nil || *row.ID != int64(IDKey) {
			key.Field = l.field(file, label, row)
			if key.Default = l.defaultOf(file, label, key.Type, row.Default); row.Default == nil && key.Type == Float && !key.Nullable {
				key.Default = 0.0
			}
		}
		if e.identify(label, row.ID, row.Name) {
			key.ID = KeyID(*row.ID)
			r.keys = append(r.keys, key)
			r.keyByID[key.ID], r.keyByName[key.Name] = key, key
			if key.ID == IDKey {
				l.rowID(file, label, row)
			}
		}
	}
	shorts := shortRows[columnRow](text)
	ids := l.lock.assign(l, file, "keys", int64(IDKey))
	for i := range table.Key {
		row := &table.Key[i]
		label := e.label(i, row.ID)
		ids.given(label, row.Name, row.ID)
		add(label, row)
	}
	if _, ok := r.keyByID[IDKey]; !ok && len(shorts) > 0 {
		add(idName, &keyRow{ID: new(int64(IDKey)), Name: idName, Type: Int.String()})
	}
	for _, s := range shorts {
		ids.given(s.label(), s.name, s.row.ID)
	}
	for _, s := range shorts {
		if !validName.MatchString(s.table) {
			l.problem(file, s.label(), "the name of the table must consist of letters, digits and _")
		}
		row := s.row.long(s.name)
		if ids.complete(s.label(), s.name, &row.ID) {
			add(s.label(), &row)
		}
	}
	slices.SortFunc(r.keys, func(a, b *Key) int { return cmp.Compare(a.ID, b.ID) })
	if _, ok := r.keyByID[IDKey]; !ok {
		l.problem(file, "", "key %d, the row id, is missing", IDKey)
	}
	ids.finish()
}

// rowID checks the only key that the engine itself knows. It denotes the row, not a column.
func (l *loader) rowID(file, label string, row *keyRow) {
	switch {
	case row.Type != Int.String() || row.Nullable || row.Writable:
		l.problem(file, label, "the row id must be an int that is neither nullable nor writable")
	case row.Field != nil || row.Default != nil:
		l.problem(file, label, "the row id has neither field nor default: it comes with the row")
	case row.Name != idName:
		// A column of that name would be a second "id" in each candidate.
		l.problem(file, label, "the row id must be named %q, as in responses, not %s", idName, errtext.Quote(row.Name))
	}
}

// field returns the field of a Redis hash that has the key's value.
func (l *loader) field(file, label string, row *keyRow) string {
	if row.Field == nil {
		return row.Name
	}
	field := *row.Field
	if !ValidField(field) {
		l.problem(file, label, "field %s must be a name of 1 to %d bytes without control characters", errtext.Quote(field), fieldMax)
	}
	return field
}

// constants reads the defaults of parameters in one environment: lines such as weight = 0.3 in params.prod.toml,
// which replace the defaults of params.toml. It checks the files of all environments.
func (l *loader) constants(r *Registry) {
	for _, env := range environments {
		file := "params." + env + ".toml"
		text, err := fileio.Read(l.tables, file, tableMaxBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.problem(file, "", "%w", err)
			continue
		}
		var values map[string]any
		if !l.unmarshal(file, text, &values) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			param, ok := r.paramByName[name]
			if !ok {
				l.problem(file, errtext.Name(name), "params.toml has no such parameter")
				continue
			}
			if value := l.defaultOf(file, errtext.Name(name), param.Type, values[name]); env == r.env {
				param.Default = value
			}
		}
	}
}

// defaultOf returns the default of a key or a parameter of that type from the value in the table; nil means that the table has none.
func (l *loader) defaultOf(file, label string, typ Type, given any) any {
	if given == nil {
		return nil
	}
	want := ""
	switch typ {
	case Int:
		if v, ok := given.(int64); ok {
			return v
		}
		want = "an integer"
	case Float:
		number, ok := given.(float64)
		if v, isInt := given.(int64); isInt {
			number, ok = float64(v), true
		}
		if ok && !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number
		}
		want = "a finite number"
	case String:
		if v, ok := given.(string); ok {
			return v
		}
		want = "a string"
	case Bool:
		if v, ok := given.(bool); ok {
			return v
		}
		want = "true or false"
	case StringSet:
		if set, ok := stringsOf(given); ok {
			return set
		}
		want = "an array of strings"
	case FeatureBundle:
		l.problem(file, label, "default is not for a feature_bundle")
		return nil
	case Vector:
		l.problem(file, label, "default is not for a vector")
		return nil
	case IntList, FloatList, StringList:
		l.problem(file, label, "default is not for a list")
		return nil
	default: // an unknown type, which has been reported
		return nil
	}
	shown := errtext.Text(fmt.Sprint(given))
	if s, ok := given.(string); ok {
		shown = errtext.Quote(s)
	}
	l.problem(file, label, "default must be %s, not %s", want, shown)
	return nil
}

// stringsOf returns the strings of an array without duplicates, sorted by bytes, as in a set.
func stringsOf(array any) ([]string, bool) {
	items, ok := array.([]any)
	set := make([]string, 0, len(items))
	for _, item := range items {
		s, isString := item.(string)
		ok = ok && isString
		set = append(set, s)
	}
	slices.Sort(set)
	return slices.Compact(set), ok
}

// paramRow is one [[param]]. In the tables context and overrides it has no name of its own.
type paramRow struct {
	ID       *int64 `toml:"id"`
	Name     string `toml:"name"`
	Type     string `toml:"type"`
	Nullable bool   `toml:"nullable"`
	Context  bool   `toml:"context"`
	Override *bool  `toml:"override"`
	Default  any    `toml:"default"`
}

// shortParamRow is a parameter in the table context or overrides, whose key is its name.
type shortParamRow struct {
	ID       *int64 `toml:"id"`
	Type     string `toml:"type"`
	Nullable bool   `toml:"nullable"`
	Override *bool  `toml:"override"`
	Default  any    `toml:"default"`
}

func (r *shortParamRow) setType(name string) { r.Type = name }

func (l *loader) params(r *Registry) {
	const file = "params.toml"
	var table struct {
		Param []paramRow               `toml:"param"`
		Short map[string]shortParamRow `toml:"*"`
	}
	var text []byte
	ok := true
	if _, err := fs.Stat(l.tables, file); !errors.Is(err, fs.ErrNotExist) || len(l.lock.Params) > 0 { // A file that has been there must not go.
		text, ok = l.decode(file, &table)
	}
	if !ok {
		return
	}
	e := newEntries[int64](l, file, "param")
	r.paramByID, r.paramByName = make(map[ParamID]*Param), make(map[string]*Param)
	add := func(label string, row *paramRow) {
		param := &Param{Name: row.Name, Nullable: row.Nullable, Context: row.Context, Override: !row.Context}
		if row.Override != nil {
			param.Override = *row.Override
		}
		if !param.Context && !param.Override {
			l.problem(file, label, "nothing can set it: it is neither for the context nor for param_overrides")
		}
		param.Type, param.Dims = l.typeOf(file, label, row.Type, Int, Float, String, Bool, IntList, FloatList, StringList, Vector)
		param.Default = l.defaultOf(file, label, param.Type, row.Default)
		l.numericID(file, label, row.ID)
		if e.identify(label, row.ID, row.Name) {
			param.ID = ParamID(*row.ID)
			r.params = append(r.params, param)
			r.paramByID[param.ID], r.paramByName[param.Name] = param, param
		}
	}
	shorts := shortRows[shortParamRow](text)
	ids := l.lock.assign(l, file, "params", 0)
	for i := range table.Param {
		row := &table.Param[i]
		label := e.label(i, row.ID)
		ids.given(label, row.Name, row.ID)
		add(label, row)
	}
	for _, s := range shorts {
		ids.given(s.label(), s.name, s.row.ID)
	}
	for _, s := range shorts {
		if s.table != "context" && s.table != "overrides" {
			l.problem(file, s.label(), "a parameter belongs in [context] or [overrides]")
		}
		row := paramRow{s.row.ID, s.name, s.row.Type, s.row.Nullable, s.table == "context", s.row.Override, s.row.Default}
		if ids.complete(s.label(), s.name, &row.ID) {
			add(s.label(), &row)
		}
	}
	slices.SortFunc(r.params, func(a, b *Param) int { return cmp.Compare(a.ID, b.ID) })
	ids.finish()
}
