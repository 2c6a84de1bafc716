package admin

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/draw"
)

// traceTimeout bounds a traced request: a person waits for it in a browser.
const traceTimeout = 30 * time.Second

// bodyMax bounds the body of a request that is traced.
const bodyMax = 1 << 20

// tracer runs one request and shows its trace. Any goroutine.
//
//	GET  /v1/trace?plan=p&user_id=1[&format=html]
//	POST /v1/trace[?plan=p][&format=html]     with a request as its body
type tracer struct {
	service *serve.Service
	caller  *access.Caller
}

// ServeHTTP implements http.Handler.
func (t *tracer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Method == http.MethodPost {
		var err error
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax)); err != nil {
			class := outcome.BadRequest
			if errors.As(err, new(*http.MaxBytesError)) {
				class = outcome.TooLarge
			}
			t.fail(w, t.service.Refuse(serve.Admin, class, "", err.Error()))
			return
		}
	}
	answered := make(chan struct{})
	q := t.service.NewQuery(serve.Admin, func(*serve.Query) { close(answered) })
	ask := r.URL.Query()
	q.Context, q.Caller, q.Traced, q.Timeout = r.Context(), t.caller, true, traceTimeout
	q.Plan, q.User, q.Body = []byte(ask.Get("plan")), []byte(ask.Get("user_id")), body
	t.service.Ask(q)
	<-answered
	defer q.Release()
	ran := q.Reply.Trace()
	if ran == nil {
		t.fail(w, q.Reply)
		return
	}
	if ask.Get("format") == "html" {
		page(w, ran)
		return
	}
	doc, _ := ran.MarshalJSON() // A trace has nothing that JSON lacks.
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(doc, '\n')) // The client may have gone.
}

// page answers with the page that rankd trace --html writes.
func page(w http.ResponseWriter, ran *trace.Trace) {
	var drawn bytes.Buffer
	_ = draw.HTML(&drawn, draw.Run{Trace: ran}) // A buffer takes everything.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = drawn.WriteTo(w)
}

// fail answers with the error of a request that did not run.
func (t *tracer) fail(w http.ResponseWriter, r serve.Reply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Class.Status())
	_, _ = w.Write(append(r.AppendBody(nil), '\n'))
}
