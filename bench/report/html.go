package report

import (
	_ "embed" // the page and the chart library
	"fmt"
	"html/template"
	"io"

	"github.com/rankd/rankd/bench/compare"
)

//go:embed echarts/echarts.common.min.js
var echartsJS string

//go:embed page.html.tmpl
var pageText string

// page is the data of the template.
type page struct {
	*compare.Comparison
	Library  template.JS
	Overview []chart // over the conditions, if there are several
	Sections []section
	Warning  string // "" if there is none
}

// section shows what was measured under the same conditions.
type section struct {
	Title        string
	Charts       []chart
	SpeedColumns []string
	SpeedRows    [][]string
	CostColumns  []string
	CostRows     [][]string
	CacheColumns []string
	CacheRows    [][]string // none: no engine keeps what it read
}

// WriteHTML writes the page. The error is w's.
func WriteHTML(w io.Writer, c *compare.Comparison) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Comparison: c, Library: template.JS(echartsJS), Overview: overview(c)}
	if c.Facts.Embedded {
		p.Warning = compare.EmbeddedWarning
	}
	for _, under := range c.Conditions() {
		s := section{
			Title: sectionTitle(c, under), Charts: sectionCharts(c, under),
			SpeedColumns: compare.SpeedColumns, CostColumns: compare.CostColumns, CacheColumns: compare.CacheColumns,
		}
		for _, cell := range c.Cells {
			if cell.Conditions == under {
				s.SpeedRows = append(s.SpeedRows, cell.SpeedRow())
				s.CostRows = append(s.CostRows, cell.CostRow())
				if c.Keeps() {
					s.CacheRows = append(s.CacheRows, cell.CacheRow())
				}
			}
		}
		p.Sections = append(p.Sections, s)
	}
	return t.Execute(w, &p)
}

func sectionTitle(c *compare.Comparison, under compare.Conditions) string {
	title := "Redis as it is"
	if under.RedisLatency > 0 {
		title = fmt.Sprintf("Redis latency +%v", under.RedisLatency)
	}
	if under.ForeignWrites > 0 {
		title += "; " + c.Writes(under)
	}
	return title
}
