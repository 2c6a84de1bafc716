package process

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABrokenServerIsReported(t *testing.T) {
	script := t.TempDir() + "/broken"
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho no luck today >&2\n"), 0o755))
	_, err := StartRedis(script, t.TempDir())
	assert.ErrorContains(t, err, "no luck today")

	_, err = StartRedis(script+".missing", t.TempDir())
	assert.Error(t, err)
}

func TestAwaitReadyKnowsBothWordings(t *testing.T) {
	assert.NoError(t, awaitReady(strings.NewReader("x\n1:M * Ready to accept connections\n")))
	assert.NoError(t, awaitReady(strings.NewReader("1:M * Ready to accept connections tcp\n")))
	assert.ErrorContains(t, awaitReady(strings.NewReader("Could not bind\n")), "Could not bind")
}
