package outcome_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/internal/outcome"
)

func TestTheTableOfClasses(t *testing.T) {
	codes, labels := map[string]bool{}, map[string]bool{}
	for _, c := range outcome.Classes() {
		assert.Regexp(t, regexp.MustCompile(`^[a-z_]+$`), c.Label())
		assert.NotEmpty(t, c.Text())
		codes[c.Code()], labels[c.Label()] = true, true
		if c == outcome.OK {
			assert.Empty(t, c.Code())
			assert.Equal(t, 200, c.Status())
			continue
		}
		assert.Regexp(t, regexp.MustCompile(`^[A-Z]+$`), c.Code())
		assert.NotEmpty(t, c.Sentence())
		assert.GreaterOrEqual(t, c.Status(), 400)
		assert.Equal(t, c.Status() == 503 || c.Status() == 429, c.RetryAfter() > 0, "Retry-After says when: %s", c.Label())
	}
	assert.Len(t, codes, len(outcome.Classes()))
	assert.Len(t, labels, len(outcome.Classes()))
}
