package rankdprom_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/adapters/rankdprom"
	"github.com/rankd/rankd/rankdtest"
)

func Example() {
	redis, err := rankdtest.StartRedis()
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()
	e, err := rankd.Open(rankd.Options{Redis: redis.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	metrics := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	metrics.MustRegister(rankdprom.New(e))

	if _, err := e.Rank(context.Background(), rankd.Request{Plan: "simple_viewer", UserID: 1}); err != nil {
		log.Fatal(err)
	}
	families, err := metrics.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "rankd_endpoint_commands_sent_total" {
			for _, m := range family.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output: redis_default 1
}

// The pedantic registry refuses a collector that describes other metrics than it collects.
func TestCollectorOfEachModel(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		t.Run(string(model), func(t *testing.T) {
			e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Model: model})
			require.NoError(t, err)
			defer e.Close()
			metrics := prometheus.NewPedanticRegistry()
			require.NoError(t, metrics.Register(rankdprom.New(e)))
			_, err = e.Rank(context.Background(), rankd.Request{Plan: "complex_dag", UserID: 1})
			require.NoError(t, err)
			assert.Positive(t, value(t, metrics, "rankd_endpoint_calls_total"))
			require.NoError(t, e.Close())
			assert.Positive(t, value(t, metrics, "rankd_endpoint_calls_total"), "of an engine that is closed")
		})
	}
}

// Two engines share a registry if each has its own label.
func TestCollectorsOfTwoEngines(t *testing.T) {
	metrics := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		e, err := rankd.Open(rankd.Options{})
		require.NoError(t, err)
		defer e.Close()
		own := prometheus.WrapRegistererWith(prometheus.Labels{"engine": name}, metrics)
		require.NoError(t, own.Register(rankdprom.New(e)))
		assert.Error(t, own.Register(rankdprom.New(e)), "the same engine twice")
	}
	assert.Zero(t, value(t, metrics, "rankd_requests_running"))
}

// value returns the sum of a family's values.
func value(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	families, err := from.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	require.Failf(t, "missing", "no metric %s", name)
	return 0
}
