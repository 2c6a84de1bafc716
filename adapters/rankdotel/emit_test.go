package rankdotel

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	sdktracetest "go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/rankd/rankd/internal/testing/tracetest"
	"github.com/rankd/rankd/trace"
)

// TestSpansOfAnyTrace: the spans of a trace are a tree below the caller's span, with the
// trace's instants and its failures. Some traces are of kinds that no drawing expects.
func TestSpansOfAnyTrace(t *testing.T) {
	traces := tracetest.Hostile()
	maps.Copy(traces, map[string]*trace.Trace{"empty ids": {Version: trace.Version}})
	for seed := range uint64(200) {
		traces[fmt.Sprint("seed ", seed)] = tracetest.Random(seed, 1+int(seed%40))
	}
	for name, tr := range traces {
		t.Run(name, func(t *testing.T) {
			tr.At = time.Unix(1_700_000_000, 0)
			exporter := sdktracetest.NewInMemoryExporter()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
			ctx, caller := provider.Tracer("caller").Start(t.Context(), "caller")
			s := &Sink{tracer: provider.Tracer("")}
			s.emit(ctx, tr)
			spans := exporter.GetSpans()

			calls := 0
			for _, track := range tr.Tracks {
				if track.Kind == trace.RedisTrack || track.Kind == trace.HTTPTrack {
					calls += len(track.Slices)
				}
			}
			byID := map[oteltrace.SpanID]*sdktracetest.SpanStub{}
			byNode := map[string]*sdktracetest.SpanStub{}
			for i := range spans {
				byID[spans[i].SpanContext.SpanID()] = &spans[i]
				assert.Equal(t, caller.SpanContext().TraceID(), spans[i].SpanContext.TraceID())
				assert.False(t, spans[i].EndTime.Before(spans[i].StartTime))
				for _, a := range spans[i].Attributes {
					assert.True(t, utf8.ValidString(a.Value.String()), "%q", a.Value.String())
				}
				if id, ok := has(&spans[i], "rankd.node"); ok {
					byNode[id] = &spans[i]
				}
			}
			ran := 0
			for _, n := range tr.Nodes {
				if !n.Ran() {
					continue
				}
				ran++
				span := byNode[text("", n.ID).Value.AsString()]
				require.NotNil(t, span, n.ID)
				assert.Equal(t, n.Op, span.Name)
				label, _ := has(span, "rankd.label")
				assert.Equal(t, text("", n.Label).Value.AsString(), label)
				assert.True(t, span.StartTime.Equal(tr.At.Add(n.Start)))
				assert.True(t, span.EndTime.Equal(tr.At.Add(n.End)))
				assert.Equal(t, n.Error != "", span.Status.Code == codes.Error)
				for _, link := range span.Links {
					assert.Contains(t, byID, link.SpanContext.SpanID())
				}
				assert.Equal(t, caller.SpanContext().SpanID(), byID[span.Parent.SpanID()].Parent.SpanID(), "two below the caller")
			}
			require.Len(t, spans, 1+ran+calls)
			request := &spans[len(spans)-1]
			assert.Equal(t, caller.SpanContext().SpanID(), request.Parent.SpanID())
			assert.Equal(t, tr.Request.Error != "", request.Status.Code == codes.Error)
			assert.True(t, request.EndTime.Equal(tr.At.Add(tr.Request.Ended)))
		})
	}
}

// has returns the value of a span's attribute.
func has(span *sdktracetest.SpanStub, key attribute.Key) (string, bool) {
	for _, a := range span.Attributes {
		if a.Key == key {
			return a.Value.String(), true
		}
	}
	return "", false
}

// A request that the provider does not sample costs one span that nobody records.
func TestProviderDoesNotSample(t *testing.T) {
	exporter := sdktracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.NeverSample()))
	(&Sink{tracer: provider.Tracer("")}).emit(context.Background(), tracetest.Random(1, 5))
	assert.Empty(t, exporter.GetSpans())
}

func TestWants(t *testing.T) {
	s := New(sdktrace.NewTracerProvider())
	defer s.Close()
	caller := func(flags oteltrace.TraceFlags) context.Context {
		return oteltrace.ContextWithRemoteSpanContext(t.Context(),
			oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: [16]byte{1}, SpanID: [8]byte{1}, TraceFlags: flags}))
	}
	assert.True(t, s.Wants(t.Context()), "a caller without a span")
	assert.True(t, s.Wants(caller(oteltrace.FlagsSampled)))
	assert.False(t, s.Wants(caller(0)))
}
