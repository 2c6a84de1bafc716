package reactor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLoggerForwardsFromWarningsUpwards(t *testing.T) {
	var got []string
	l := logger{func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }}
	for _, log := range []func(string, ...any){l.Debugf, l.Infof, l.Warnf, l.Errorf, l.Fatalf} {
		log("%d", len(got))
	}
	assert.Equal(t, []string{"0", "1", "2"}, got)
	logger{}.Errorf("dropped: %d", 1)
}
