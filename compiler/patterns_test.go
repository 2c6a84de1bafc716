package compiler

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestForgets: Node gives another result than the engine for the patterns of the first list. See the corpus for the values.
func TestForgets(t *testing.T) {
	for _, pattern := range []string{
		`((a)(b(c))?)+`, `(z)((a+)?(b+)?(c))*`, `(a*)*`, `(?:(a)|(b))*`, `(?:(a)|b)+`, `(?:(a)?b){2}`, `(?:(a)?b){1,3}`, `(?:(a)?b){2,}`, `(?:(a)?b){0,2}`, `^a(.*)?$`, `(\s*)?x`, `(?<n>a*)?`, `((?=(a))?b)*`,
		`(?:x(?:(a)|[|)(]))*`, `(a?){0,1}`,
	} {
		assert.True(t, forgets(pattern), pattern)
	}
	for _, pattern := range []string{
		`(\d+)(?:,(\d+))*`, `(a)?(b)?c`, `(a|b)*`, `((a)b)+`, `(a)|(b)`, `(?:a|b)*(c)`, `\((a)?\)+`, `[(a)?]*`, `(?<year>\d{4})-(?<month>\d\d)?`, `(?:(a)?b){1}`, `(?:(a)?b){1,1}`, `(?:(a)?b){0,1}`, `(a+)?`, `(?!(a))*`, `a{,3}(b)`,
		``, `(`, `[`, `\`, `(?<`, `)a(`,
	} {
		assert.False(t, forgets(pattern), pattern)
	}
}
