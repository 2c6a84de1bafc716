package process

import (
	"errors"
	"fmt"
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

// The masters share the slots, meet, and agree.
func TestFormCluster(t *testing.T) {
	var said [2][]string
	asked, broken := 0, error(nil)
	nodes := make([]ClusterNode, 2)
	for i := range nodes {
		nodes[i] = ClusterNode{Port: fmt.Sprint(i), Bus: 10 + i, Do: func(words ...string) (string, error) {
			if words[1] != "INFO" {
				said[i] = append(said[i], strings.Join(words, " "))
				return "OK", broken
			}
			if asked++; asked < 4 {
				return "cluster_state:fail", nil
			}
			return "cluster_state:ok\r\ncluster_slots_ok:16384", nil
		}}
	}
	require.NoError(t, FormCluster(nodes))
	assert.Equal(t, [2][]string{
		{"CLUSTER ADDSLOTSRANGE 0 8191", "CLUSTER SET-CONFIG-EPOCH 1", "CLUSTER MEET 127.0.0.1 1 11"},
		{"CLUSTER ADDSLOTSRANGE 8192 16383", "CLUSTER SET-CONFIG-EPOCH 2"},
	}, said)
	broken = errors.New("no luck")
	assert.ErrorIs(t, FormCluster(nodes), broken)
}
