package rankd

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/scheduler"
)

// Rank and Submit compile plans for their own engine, so no request of theirs meets these errors.
func TestARefusedPlanIsInvalid(t *testing.T) {
	for _, refused := range []error{scheduler.ErrNoPlan, scheduler.ErrForeignPlan} {
		err := runError("id", refused)
		assert.Equal(t, "Invalid plan", err.Text)
		assert.Equal(t, refused.Error(), err.Detail)
		assert.True(t, errors.Is(err, ErrInvalidPlan) && errors.Is(err, refused))
	}
}
