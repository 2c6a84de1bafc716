package httpfront

import (
	"github.com/valyala/fasthttp"

	"github.com/rankd/rankd/outcome"
)

// handle answers one request. The steps stand in the order in which they refuse.
func (f *Front) handle(ctx *fasthttp.RequestCtx) {
	x := f.exchanges.Get().(*exchange)
	defer x.free()
	headers := &ctx.Request.Header
	x.conn, x.ctx = ctx.Conn().(*conn), ctx
	x.incoming = body{stream: ctx.RequestBodyStream(), conn: x.conn, length: headers.ContentLength()}
	x.unread = x.incoming.stream != nil
	if fault := x.head.read(headers.RawHeaders(), headers.IsHTTP11()); fault != "" {
		x.refuse(fault.problem())
		return
	}
	if !headers.IsHTTP11() && string(headers.Protocol()) != "HTTP/1.0" {
		x.refuse(badVersion)
		return
	}
	if err := x.checkHost(); err != nil {
		x.refuse(&problem{class: outcome.Forbidden, detail: err.Error()})
	} else {
		x.serve()
	}
	x.settleBody()
	if f.leaving.Load() || x.head.closes() {
		ctx.SetConnectionClose()
	}
}

// checkHost says why the name that the client asked for keeps it out.
func (x *exchange) checkHost() error {
	host, origin := x.head.get(host), x.head.get(origin)
	hosts := x.front.options.Hosts
	if hosts == nil || origin == nil && x.conn.named && string(host) == x.conn.name {
		return nil
	}
	name := string(host)
	err := hosts.Check(name, string(origin))
	x.conn.name, x.conn.named = name, err == nil
	return err
}

// serve finds the endpoint and calls it.
func (x *exchange) serve() {
	// "/v1//rank" is another path than "/v1/rank", so it is not normalized.
	r, plan := routeOf(x.ctx.URI().PathOriginal())
	if r == nil {
		x.refuse(noPath)
		return
	}
	if !r.takes(x.ctx.Method()) {
		x.ctx.Response.Header.Set(fasthttp.HeaderAllow, r.allow())
		x.refuse(noMethod)
		return
	}
	x.plan = plan
	if !r.open {
		if p := x.authenticate(); p != nil {
			x.refuse(p)
			return
		}
	}
	if coding := x.head.get(contentEncoding); r.asks && len(coding) > 0 && string(coding) != "identity" {
		x.refuse(encoded)
		return
	}
	r.handle(x)
}

// authenticate finds out who asks.
func (x *exchange) authenticate() *problem {
	if x.caller = x.front.store.Anonymous(); x.caller != nil {
		return nil
	}
	token := x.head.bearer()
	if len(token) == 0 {
		return noToken
	}
	known := false
	if x.caller, known = x.front.store.Lookup(token); !known {
		return badToken
	}
	return nil
}
