package draw

// A plane is a grid with measures. Between the rows, the columns and the bands it has free lanes, in which edges go
// around nodes. One goroutine at a time.
type plane struct {
	measures
	grid
	bandTop []float64
	height  float64
}

// layBands finds the top of each band.
func (p *plane) layBands() {
	y := p.top
	for _, rows := range p.rows {
		p.bandTop = append(p.bandTop, y)
		y += float64(rows)*(p.boxHeight+p.lane) + p.between
	}
	p.height = max(y-p.between, 20)
}

// corner returns the upper left corner of a node's box.
func (p *plane) corner(node int) (x, y float64) {
	at := p.cells[node]
	x = (pictureWidth-float64(p.columns)*p.boxWidth-float64(p.columns-1)*p.gutter)/2 + float64(at.column)*(p.boxWidth+p.gutter)
	return x, p.bandTop[at.band] + float64(at.row)*(p.boxHeight+p.lane)
}

// edge returns the way of an edge: to the next column straight, to a later column along the lane above the reader's
// row, and to another band around, below the writer's band.
func (p *plane) edge(from, to int) string {
	a, b := p.cells[from], p.cells[to]
	x1, y1 := p.corner(from)
	x2, y2 := p.corner(to)
	x1, y1, y2 = x1+p.boxWidth, y1+p.boxHeight/2, y2+p.boxHeight/2
	switch {
	case a.band == b.band && a.column+1 == b.column:
		return markup("M%v %v", x1, y1) + swing(x1, y1, x2, y2)
	case a.band == b.band && a.column < b.column:
		lane := y2 - p.boxHeight/2 - p.lane/2
		if b.row == 0 { // no lane above
			lane = y2 + p.boxHeight/2 + p.lane/2
		}
		return markup("M%v %v", x1, y1) + swing(x1, y1, x1+p.gutter, lane) + markup("H%v", x2-p.gutter) + swing(x2-p.gutter, lane, x2, y2)
	default:
		lane := p.bandTop[b.band] - p.between/2 - p.lane/2
		out, in := x1+p.gutter*0.4, x2-p.gutter*0.4
		return rounded([][2]float64{{x1, y1}, {out, y1}, {out, lane}, {in, lane}, {in, y2}, {x2, y2}})
	}
}

// swing returns a curve that leaves and arrives horizontally.
func swing(x1, y1, x2, y2 float64) string {
	middle := (x1 + x2) / 2
	return markup("C%v %v %v %v %v %v", middle, y1, middle, y2, x2, y2)
}

// rounded returns a way of straight parts with round corners.
func rounded(points [][2]float64) string {
	const radius = 5
	way := markup("M%v %v", points[0][0], points[0][1])
	toward := func(from, to [2]float64) [2]float64 { // at most a radius away from the first
		step := func(a, b float64) float64 { return a + max(-radius, min(radius, (b-a)/2)) }
		return [2]float64{step(from[0], to[0]), step(from[1], to[1])}
	}
	for k := 1; k < len(points)-1; k++ {
		before, after := toward(points[k], points[k-1]), toward(points[k], points[k+1])
		way += markup("L%v %vQ%v %v %v %v", before[0], before[1], points[k][0], points[k][1], after[0], after[1])
	}
	end := points[len(points)-1]
	return way + markup("L%v %v", end[0], end[1])
}
