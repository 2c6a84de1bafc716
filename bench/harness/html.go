package harness

import (
	_ "embed" // the page and the chart library
	"html/template"
	"io"
)

//go:embed echarts/echarts.common.min.js
var echartsJS string

//go:embed page.html.tmpl
var pageText string

// WriteHTML writes the report as a page. The error is w's.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Report
		Library template.JS
	}{r, template.JS(echartsJS)})
}
