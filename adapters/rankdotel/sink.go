// Package rankdotel turns traces of requests into spans of OpenTelemetry.
//
//	spans := rankdotel.New(otel.GetTracerProvider())
//	defer spans.Close()
//	e, err := rankd.Open(rankd.Options{TraceSink: spans, TraceSample: 1})
//	answer, err := e.Rank(ctx, request) // below the span in ctx
//
// A request becomes a span, below the span in the context that its caller gave to Rank or Submit. Below it lies a span for each node that
// ran, linked to the nodes that it read, and below that a span for each call to a Redis or a service.
//
//	span                        attributes
//	rank <plan>                 rankd.plan, .request_id, .engine, .scheduling, .queue_delay, .degraded
//	<op>, core::follow say      rankd.node, .label, .place, .status, .rows_in, .rows_out, .wait, .source_span
//	redis <endpoint>, or http   rankd.endpoint, .connection, .commands, .bytes_sent, .bytes_received, .given_up
//
// Times are in seconds. Calls need Options.TraceDetail trace.Full, the default.
package rankdotel

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/rankd/rankd/trace"
)

// Sink is a trace.Sink that makes spans, on a goroutine of its own: its queue drops recordings that come faster than that. Close the
// engine first, then the sink, which makes the spans of what waits, and then shut down the provider. Any goroutine.
type Sink struct {
	*trace.Queue
	tracer oteltrace.Tracer
}

// New returns a Sink that makes spans with a tracer of the provider. Close ends it.
func New(provider oteltrace.TracerProvider) *Sink {
	s := &Sink{tracer: provider.Tracer("github.com/rankd/rankd/adapters/rankdotel")}
	s.Queue = trace.NewQueue(func(r *trace.Recording) { s.emit(r.Context, r.Trace()) })
	return s
}

// Wants implements trace.Chooser. A request whose caller has a span that is not sampled has no spans, as the SDK's sampler
// ParentBased decides. The provider's sampler decides about all others.
func (s *Sink) Wants(ctx context.Context) bool {
	caller := oteltrace.SpanContextFromContext(ctx)
	return !caller.IsValid() || caller.IsSampled()
}

// emit makes the spans of one request, below the span in ctx.
func (s *Sink) emit(ctx context.Context, t *trace.Trace) {
	r := &t.Request
	ctx, request := s.start(ctx, t, "rank "+t.Plan, 0, oteltrace.SpanKindInternal,
		text("rankd.plan", t.Plan), text("rankd.request_id", t.RequestID),
		text("rankd.engine", t.Engine), text("rankd.scheduling", t.Scheduling),
		seconds("rankd.queue_delay", r.QueueDelay), attribute.Bool("rankd.degraded", r.Degraded))
	if !request.IsRecording() {
		return // The provider's sampler does not want it.
	}
	spans := make([]oteltrace.Span, len(t.Nodes)) // nil: the node never ran
	below := make([]context.Context, len(t.Nodes))
	for i := range t.Nodes {
		below[i] = ctx
		if n := &t.Nodes[i]; n.Ran() {
			below[i], spans[i] = s.start(ctx, t, n.Op, n.Start, oteltrace.SpanKindInternal,
				text("rankd.node", n.ID), text("rankd.label", n.Label), text("rankd.place", string(n.Place)), text("rankd.status", string(n.Status)),
				attribute.Int("rankd.rows_in", n.RowsIn), attribute.Int("rankd.rows_out", n.RowsOut),
				seconds("rankd.wait", n.Wait()), text("rankd.source_span", n.SourceSpan))
		}
	}
	for i := range t.Tracks {
		s.calls(t, &t.Tracks[i], below)
	}
	for i, span := range spans {
		if span == nil {
			continue
		}
		n := &t.Nodes[i]
		for _, input := range n.Inputs {
			if read := spans[input]; read != nil {
				span.AddLink(oteltrace.Link{SpanContext: read.SpanContext()})
			}
		}
		end(span, t, n.End, n.Error)
	}
	end(request, t, r.Ended, r.Error)
}

// calls makes the spans of the calls on a connection.
func (s *Sink) calls(t *trace.Trace, track *trace.Track, below []context.Context) {
	if track.Kind != trace.RedisTrack && track.Kind != trace.HTTPTrack {
		return
	}
	name := string(track.Kind) + " " + track.Endpoint
	for i := range track.Slices {
		c := &track.Slices[i]
		_, span := s.start(below[c.Node], t, name, c.Start, oteltrace.SpanKindClient,
			text("rankd.endpoint", track.Endpoint), attribute.Int("rankd.connection", track.Number),
			attribute.Int("rankd.commands", c.Commands), attribute.Int("rankd.bytes_sent", c.Sent), attribute.Int("rankd.bytes_received", c.Received),
			attribute.Bool("rankd.given_up", c.GivenUp))
		end(span, t, c.End, "")
	}
}

func (s *Sink) start(
	ctx context.Context, t *trace.Trace, name string, at time.Duration, kind oteltrace.SpanKind, attributes ...attribute.KeyValue,
) (context.Context, oteltrace.Span) {
	return s.tracer.Start(ctx, name, oteltrace.WithTimestamp(t.At.Add(at)), oteltrace.WithSpanKind(kind), oteltrace.WithAttributes(attributes...))
}

// end ends a span, as an error if failed says why.
func end(span oteltrace.Span, t *trace.Trace, at time.Duration, failed string) {
	if failed != "" {
		span.SetStatus(codes.Error, strings.ToValidUTF8(failed, "\uFFFD"))
	}
	span.End(oteltrace.WithTimestamp(t.At.Add(at)))
}

// text has only valid UTF-8, since an exporter may refuse a whole batch of spans for one text that has not.
func text(name, value string) attribute.KeyValue {
	return attribute.String(name, strings.ToValidUTF8(value, "\uFFFD"))
}

func seconds(name string, d time.Duration) attribute.KeyValue {
	return attribute.Float64(name, d.Seconds())
}
