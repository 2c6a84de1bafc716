package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The dev environment loads the plan twice, since its Redis moves; a pipe can be read once.
func TestThePlanMayBeAPipeAndHaveAnyName(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString(fixedPlan("any name/at all"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	assert.Equal(t, exitOK, o.status, "%s%s", o.stdout, o.stderr)
	assert.NotEmpty(t, decode(t, o.lines()[0]).Candidates)
}
