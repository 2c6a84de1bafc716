package cmdline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd/internal/bounds"
)

// A Setting is one row of a command's table of flags. --help, the tables of the pages and the checks all come from
// the row. Immutable; any goroutine.
type Setting struct {
	Name string // without "--"
	// To is where the value goes: an *int, *bool, *string, *float64, *time.Duration, *[]int, *[]float64, *[]time.Duration or *[]string, or a pflag.Value such as Not, Text
	// and Duration return.
	To      any
	Default any // of the type that To points to; nil: its zero value
	// Option is the number of rankd.Options that the flag sets: "CPUThreads". The flag has its range. If Option is
	// "", Least and Most are the range, in the unit of the flag, or in nanoseconds for a *time.Duration. Both zero:
	// there is no range.
	Option      string
	Least, Most int64
	OneOf       []string // the texts that the flag takes, or each of several; nil: any
	// Idle says why the flag has no effect together with the others, as in "with --resp off", or "" if it has one.
	// Nil: it always has one.
	Idle   func() string
	Hidden bool   // --help leaves it out
	Shown  string // the default in the pages, if it is not the same on all machines
	See    string // the section of a page that says more, as in "operating.md#tokens"
	Help   string // one sentence; `quotes` mark the placeholder of the value
}

// The annotations with which a flag keeps what only pages show.
const (
	shownKey = "shown"
	seeKey   = "see"
)

// agreeKey is the annotation of --redis whose value is for all environments: the name of the file that says so.
const agreeKey = "agree"

// AddSettings adds the flags of a table.
func AddSettings(f *pflag.FlagSet, table []Setting) {
	for _, s := range table {
		switch to := s.To.(type) {
		case *int:
			f.IntVar(to, s.Name, valueOr(s.Default, 0), s.Help)
		case *bool:
			f.BoolVar(to, s.Name, valueOr(s.Default, false), s.Help)
		case *string:
			f.StringVar(to, s.Name, valueOr(s.Default, ""), s.Help)
		case *float64:
			f.Float64Var(to, s.Name, valueOr(s.Default, 0.0), s.Help)
		case *time.Duration:
			f.DurationVar(to, s.Name, valueOr(s.Default, time.Duration(0)), s.Help)
		case *[]int:
			f.IntSliceVar(to, s.Name, valueOr[[]int](s.Default, nil), s.Help)
		case *[]float64:
			f.Float64SliceVar(to, s.Name, valueOr[[]float64](s.Default, nil), s.Help)
		case *[]time.Duration:
			f.DurationSliceVar(to, s.Name, valueOr[[]time.Duration](s.Default, nil), s.Help)
		case *[]string:
			f.StringSliceVar(to, s.Name, valueOr[[]string](s.Default, nil), s.Help)
		case pflag.Value:
			if s.Default != nil {
				if err := to.Set(fmt.Sprint(s.Default)); err != nil {
					panic(err) // a fault of the table, which shows at each use of the command
				}
			}
			f.Var(to, s.Name, s.Help)
			if to.Type() == "bool" {
				f.Lookup(s.Name).NoOptDefVal = "true"
			}
		default:
			panic(fmt.Sprintf("--%s has no place for its value", s.Name)) // the same
		}
		flag := f.Lookup(s.Name)
		flag.Hidden = s.Hidden
		flag.Annotations = map[string][]string{shownKey: {s.Shown}, seeKey: {s.See}}
	}
}

// valueOr returns a default, or other if there is none. It panics if the default has another type than its place, a fault of the table.
func valueOr[T any](v any, other T) T {
	if v == nil {
		return other
	}
	return v.(T)
}

// CheckSettings reports each flag given whose value is out of its range, or not among those that it takes.
func CheckSettings(given *pflag.FlagSet, table []Setting) error {
	var problems []error
	for _, s := range table {
		if !given.Changed(s.Name) {
			continue
		}
		if s.OneOf != nil {
			problems = append(problems, s.checkOneOf())
		}
		if r, ok := bounds.Option(s.Option); ok {
			s.Least, s.Most = r.Least, r.Most
		}
		if s.Least < s.Most {
			problems = append(problems, s.checkRange(given.Lookup(s.Name).Value))
		}
	}
	return errors.Join(problems...)
}

// checkRange looks at the numbers or the times given.
func (s *Setting) checkRange(given pflag.Value) error {
	for _, text := range strings.Split(strings.Trim(given.String(), "[]"), ",") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && (n < s.Least || n > s.Most) {
			return fmt.Errorf("--%s is a number from %d to %d, not %d", s.Name, s.Least, s.Most, n)
		}
		least, most := time.Duration(s.Least), time.Duration(s.Most)
		if d, err := time.ParseDuration(text); given.Type() == "duration" && err == nil && (d < least || d > most) {
			return fmt.Errorf("--%s is a time from %v to %v, not %v", s.Name, least, most, d)
		}
	}
	return nil
}

// checkOneOf checks the value in its place, which may differ from the given one by now.
func (s *Setting) checkOneOf() error {
	var values []string
	switch to := s.To.(type) {
	case *string:
		values = []string{*to}
	case *[]string:
		values = *to
	case pflag.Value:
		values = []string{to.String()}
	}
	for _, value := range values {
		if !slices.Contains(s.OneOf, value) {
			last := len(s.OneOf) - 1
			return fmt.Errorf("--%s is %s or %s, not %q", s.Name, strings.Join(s.OneOf[:last], ", "), s.OneOf[last], value)
		}
	}
	return nil
}

// AddSettings notes the flags of a table that have no effect.
func (i *IdleFlags) AddSettings(table []Setting) {
	for _, s := range table {
		if s.Idle == nil {
			continue
		}
		if why := s.Idle(); why != "" {
			i.Add(s.Name, why)
		}
	}
}

// PageRow returns the row of a flag in the tables of the pages: its name, its sentence and its default. The links to other pages begin
// with root, as in "docs/" for README.
func PageRow(flag *pflag.Flag, root string) string {
	text := strings.NewReplacer("`", "", "<", `\<`, "|", `\|`).Replace(flag.Usage)
	if see := annotation(flag, seeKey); see != "" {
		text += " ([more](" + root + see + "))"
	}
	value := annotation(flag, shownKey)
	switch {
	case value != "":
	case flag.DefValue == "" || flag.DefValue == "[]":
		value = "none"
	default:
		value = "`" + flag.DefValue + "`"
	}
	return fmt.Sprintf("| `--%s` | %s | %s |", flag.Name, text, value)
}

func annotation(flag *pflag.Flag, key string) string {
	if values := flag.Annotations[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Not returns a flag that is true where to is false.
func Not(to *bool) pflag.Value { return notValue{to} }

type notValue struct{ to *bool }

func (v notValue) String() string   { return strconv.FormatBool(v.to == nil || !*v.to) }
func (v notValue) Type() string     { return "bool" }
func (v notValue) IsBoolFlag() bool { return true }
func (v notValue) Set(text string) error {
	value, err := strconv.ParseBool(text)
	*v.to = !value
	return err
}

// Text returns a flag whose text is of a type of its own.
func Text[T ~string](to *T) pflag.Value { return textValue[T]{to} }

type textValue[T ~string] struct{ to *T }

func (v textValue[T]) String() string        { return string(*v.to) }
func (v textValue[T]) Type() string          { return "string" }
func (v textValue[T]) Set(text string) error { *v.to = T(text); return nil }

// Duration returns a flag that is a whole number of units.
func Duration(to *time.Duration, unit time.Duration) pflag.Value {
	return &durationValue{to: to, unit: unit}
}

// durationValue keeps the number, since the product may be too large: CheckSettings refuses such a number.
type durationValue struct {
	to   *time.Duration
	unit time.Duration
	n    int
}

func (v *durationValue) String() string { return strconv.Itoa(v.n) }
func (v *durationValue) Type() string   { return "int" }
func (v *durationValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 0, strconv.IntSize)
	v.n, *v.to = int(n), time.Duration(n)*v.unit
	return err
}
