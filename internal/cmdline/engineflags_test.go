package cmdline

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/bounds"
)

// A flag with an option's range sets that option, in the range's unit.
func TestFlagsSetTheOptionsWhoseRangesTheyHave(t *testing.T) {
	var e EngineFlags
	table := slices.Concat(e.PlanSettings(), e.EngineSettings(), e.SchedulingSettings(), e.DeadlineSettings(), e.GraceSettings(),
		e.GrantSettings(nil), e.ResponseSettings(), e.RecordingSettings())
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddSettings(f, table)
	found := 0
	for _, s := range table {
		if s.Option == "" || s.Name == "trace_sample" { // which EngineOptions copies
			continue
		}
		found++
		r, ok := bounds.Option(s.Option)
		require.True(t, ok, "internal/bounds has no range of %s, which --%s names", s.Option, s.Name)
		require.NoError(t, f.Set(s.Name, strconv.FormatInt(r.Most, 10)))
		require.NoError(t, CheckSettings(f, table))
		value := reflect.ValueOf(e.Options)
		for _, name := range strings.Split(s.Option, ".") {
			value = value.FieldByName(name)
		}
		assert.Equal(t, r.Max(), value.Int(), s.Name)
		require.NoError(t, f.Set(s.Name, strconv.FormatInt(r.Most+1, 10)))
		require.ErrorContains(t, CheckSettings(f, table), "--"+s.Name+" is a number from")
		require.NoError(t, f.Set(s.Name, strconv.FormatInt(r.Most, 10)))
	}
	assert.GreaterOrEqual(t, found, 10)
}
