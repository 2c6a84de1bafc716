package cmdline

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// color is a text with its own type.
type color string

// values are what the flags of table set.
type values struct {
	rows  int
	off   bool
	form  string
	names []string
	shade color
	wait  time.Duration
	rates []float64
	adds  []time.Duration
}

func (v *values) table() []Setting {
	return []Setting{
		{Name: "rows", To: &v.rows, Default: 5, Least: 1, Most: 9, Help: "make this `number` of rows", Shown: "by cores"},
		{Name: "share", To: Not(&v.off), Idle: func() string {
			if v.rows == 9 {
				return "with --rows 9"
			}
			return ""
		}, Help: "share <rows>"},
		{Name: "form", To: &v.form, Default: "flat", OneOf: []string{"flat", "fields"}, See: "operating.md#tokens", Help: "`form` of a row"},
		{Name: "names", To: &v.names, Help: "`names`"},
		{Name: "shade", To: Text(&v.shade), Default: color("red"), OneOf: []string{"red", "green", "blue"}, Help: "`color`"},
		{Name: "rates", To: &v.rates, Help: "`rates`"},
		{Name: "adds", To: &v.adds, Default: []time.Duration{0}, Help: "`times`"},
		{Name: "wait_ms", To: Duration(&v.wait, time.Millisecond), Default: 20, Option: "Timeout", Hidden: true, Help: "wait"},
	}
}

// parse returns what a command line says, and what is wrong with it.
func parse(args ...string) (v values, f *pflag.FlagSet, err error) {
	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	AddSettings(f, v.table())
	if err = f.Parse(args); err == nil {
		idle := IdleFlags{Given: f}
		idle.AddSettings(v.table())
		err = errors.Join(CheckSettings(f, v.table()), idle.Problems())
	}
	return v, f, err
}

func TestSettings(t *testing.T) {
	standard := values{rows: 5, form: "flat", shade: "red", wait: 20 * time.Millisecond, adds: []time.Duration{0}}
	for _, c := range []struct {
		args []string
		want func(*values)
		err  string
	}{
		{nil, func(*values) {}, ""},
		{[]string{"--rows=9", "--form=fields", "--names=a,b"}, func(v *values) { v.rows, v.form, v.names = 9, "fields", []string{"a", "b"} }, ""},
		{[]string{"--share=false", "--shade=blue", "--wait_ms=7"}, func(v *values) { v.off, v.shade, v.wait = true, "blue", 7*time.Millisecond }, ""},
		{[]string{"--rates=1.5,2", "--adds=0,1ms"}, func(v *values) { v.rates, v.adds = []float64{1.5, 2}, []time.Duration{0, time.Millisecond} }, ""},
		{[]string{"--share"}, func(*values) {}, ""},
		{[]string{"--rows=0"}, nil, "--rows is a number from 1 to 9, not 0"},
		{[]string{"--rows=9", "--share"}, nil, "--share has no effect with --rows 9"},
		{[]string{"--form=x", "--shade=x"}, nil, "--form is flat or fields, not \"x\"\n--shade is red, green or blue, not \"x\""},
		{[]string{"--wait_ms=9223372036854775807"}, nil, "--wait_ms is a number from 0 to 2147483647, not 9223372036854775807"},
		{[]string{"--wait_ms=-1"}, nil, "--wait_ms is a number from 0 to 2147483647, not -1"},
	} {
		got, _, err := parse(c.args...)
		if c.err != "" {
			assert.EqualError(t, err, c.err, c.args)
			continue
		}
		require.NoError(t, err, c.args)
		want := standard
		c.want(&want)
		assert.Equal(t, want, got, c.args)
	}
	for _, refused := range []string{"--rows=x", "--share=x", "--wait_ms=x", "--wait_ms=99999999999999999999"} {
		_, _, err := parse(refused)
		assert.ErrorAs(t, err, new(*pflag.InvalidValueError), refused)
	}
}

func TestPageRow(t *testing.T) {
	_, f, err := parse()
	require.NoError(t, err)
	for name, want := range map[string]string{
		"rows":  "| `--rows` | make this number of rows | by cores |",
		"share": "| `--share` | share \\<rows> | `true` |",
		"form":  "| `--form` | form of a row ([more](docs/operating.md#tokens)) | `flat` |",
		"names": "| `--names` | names | none |",
	} {
		assert.Equal(t, want, PageRow(f.Lookup(name), "docs/"))
	}
	assert.True(t, f.Lookup("wait_ms").Hidden)
}
