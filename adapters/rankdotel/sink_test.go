package rankdotel_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/adapters/rankdotel"
	"github.com/rankd/rankd/rankdtest"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // or one that sends to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	redis, err := rankdtest.StartRedis()
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()
	spans := rankdotel.New(provider)
	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), TraceSink: spans, TraceSample: 1})
	if err != nil {
		log.Fatal(err)
	}

	ctx, page := provider.Tracer("shop").Start(context.Background(), "front page")
	if _, err := e.Rank(ctx, rankd.Request{Plan: "simple_viewer", UserID: 1}); err != nil {
		log.Fatal(err)
	}
	page.End()

	_ = e.Close()
	spans.Close()
	_ = provider.ForceFlush(context.Background())
	name := map[oteltrace.SpanID]string{}
	for _, span := range exporter.GetSpans() {
		name[span.SpanContext.SpanID()] = span.Name
	}
	for _, span := range exporter.GetSpans() {
		fmt.Printf("%s, below %q\n", span.Name, name[span.Parent.SpanID()])
	}
	// Unordered output:
	// front page, below ""
	// rank simple_viewer, below "front page"
	// core::viewer, below "rank simple_viewer"
	// redis ep_0001, below "core::viewer"
}

// TestCallersSpan: on each model, the spans of a request are below the span of the caller of
// Rank or Submit. A request whose caller is not sampled is not recorded.
func TestCallersSpan(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		t.Run(string(model), func(t *testing.T) {
			exporter := tracetest.NewInMemoryExporter()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
			spans := rankdotel.New(provider)
			e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Model: model, TraceSink: spans, TraceSample: 1})
			require.NoError(t, err)
			defer e.Close()
			caller := func(id byte, flags oteltrace.TraceFlags) context.Context {
				return oteltrace.ContextWithRemoteSpanContext(t.Context(),
					oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: [16]byte{id}, SpanID: [8]byte{id}, TraceFlags: flags, Remote: true}))
			}
			r := rankd.Request{Plan: "complex_dag", UserID: 1}
			_, err = e.Rank(caller(1, oteltrace.FlagsSampled), r)
			require.NoError(t, err)
			_, err = e.Rank(caller(2, 0), r)
			require.NoError(t, err)
			_, err = e.Rank(t.Context(), r)
			require.NoError(t, err)
			done := make(chan error)
			e.Submit(caller(3, oteltrace.FlagsSampled), r, func(_ *rankd.Answer, err error) { done <- err })
			require.NoError(t, <-done)
			require.NoError(t, e.Close())
			assert.Zero(t, spans.Close())

			parents := map[oteltrace.SpanID]int{}
			nodes := map[oteltrace.TraceID]int{}
			for _, span := range exporter.GetSpans() {
				if span.Name == "rank complex_dag" {
					parents[span.Parent.SpanID()]++
				} else if span.SpanKind == oteltrace.SpanKindInternal {
					nodes[span.SpanContext.TraceID()]++
				}
			}
			assert.Equal(t, map[oteltrace.SpanID]int{{1}: 1, {3}: 1, {}: 1}, parents)
			assert.Len(t, nodes, 3)
			assert.Equal(t, 10, nodes[oteltrace.TraceID{3}])
		})
	}
}
