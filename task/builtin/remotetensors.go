package builtin

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tensors is the dialect of the Open Inference Protocol: the tables of the endpoint say which columns and parameters its
// tensors have. Immutable; any goroutine.
type tensors struct {
	node    *remoteNode
	inputs  []tensorInput
	outputs []*registry.Tensor // those that have a column of the node
	places  []outputPlace      // of the columns of the node
}

// outputPlace is where a column of a node stands in the outputs: from an element of each row on. Immutable.
type outputPlace struct{ output, at int }

// tensorInput is an input tensor, with what it is made of. Immutable.
type tensorInput struct {
	*registry.Tensor
	keys   []*registry.Key // of Columns
	param  *registry.Param // nil of userParam
	of     *tensorInput    // of a mask and of lengths
	masked bool            // another tensor says which elements have values
	list   bool            // rows may have fewer elements than the tensor
}

// userParam names the user of the request, where no parameter of the registry has the name.
const userParam = "user_id"

// elementTypes are the types of keys and parameters whose values an input may have, by datatype; outputTypes are those that
// elements of an output become. Immutable.
var (
	integers     = []registry.Type{registry.Int, registry.Bool, registry.IntList}
	floats       = []registry.Type{registry.Int, registry.Float, registry.Bool, registry.Vector, registry.IntList, registry.FloatList}
	elementTypes = map[string][]registry.Type{
		"FP64": floats, "FP32": floats, "FP16": floats, "INT64": integers, "INT32": integers, "UINT8": integers,
		"BOOL": {registry.Bool}, "BYTES": {registry.String, registry.StringSet, registry.StringList},
	}
	outputTypes = map[string][]registry.Type{
		"FP64": {registry.Float}, "FP32": {registry.Float, registry.Vector}, "FP16": {registry.Float, registry.Vector},
		"INT64": {registry.Int}, "INT32": {registry.Int}, "UINT8": {registry.Int}, "BOOL": {registry.Bool}, "BYTES": {registry.String},
	}
)

// newTensors compares the tables of an endpoint with the keys and the parameters of the registry.
func newTensors(r *remoteNode, reg *registry.Registry) (dialect, error) {
	ep := r.node.Endpoint
	d := &tensors{node: r, inputs: make([]tensorInput, len(ep.Service.Inputs)), places: make([]outputPlace, len(r.columns))}
	for i := range d.inputs {
		t := &d.inputs[i]
		t.Tensor = &ep.Service.Inputs[i]
		for j := range ep.Service.Inputs {
			switch other := &ep.Service.Inputs[j]; {
			case other.MaskOf == t.Name:
				t.masked = true
			case other.Name == t.MaskOf, other.Name == t.LengthsOf:
				t.of = &d.inputs[j]
			}
		}
		if err := t.resolve(reg); err != nil {
			return nil, plan.ParamErrorf("endpoint", "%s, input %s: %v", ep.Name, task.Quote(t.Name), err)
		}
	}
	found := make([]bool, len(r.columns))
	for i := range ep.Service.Outputs {
		t := &ep.Service.Outputs[i]
		keys, err := keysOf(t, reg, outputTypes[t.Datatype])
		if err != nil {
			return nil, plan.ParamErrorf("endpoint", "%s, output %s: %v", ep.Name, task.Quote(t.Name), err)
		}
		at, used := 0, false
		for _, key := range keys {
			if j := slices.Index(r.columns, key); j >= 0 {
				if found[j] {
					return nil, plan.ParamErrorf("endpoint", "%s: two outputs have the column %s", ep.Name, key.Name)
				}
				found[j], used, d.places[j] = true, true, outputPlace{len(d.outputs), at}
			}
			at += max(1, key.Dims)
		}
		if used {
			d.outputs = append(d.outputs, t)
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		return nil, plan.ParamErrorf(plan.ItemPath("columns", i), "no output of endpoint %s has the column %s", ep.Name, r.columns[i].Name)
	}
	return d, nil
}

// keysOf returns the keys of a tensor's columns, which have the types and fill a row of the tensor.
func keysOf(t *registry.Tensor, reg *registry.Registry, types []registry.Type) (keys []*registry.Key, err error) {
	width := int64(0)
	for _, name := range t.Columns {
		key, ok := reg.KeyByName(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("there is no key %s in the registry", task.Quote(name))
		case !slices.Contains(types, key.Type) && (key.ID != registry.IDKey || t.Datatype != "BYTES"):
			return nil, fmt.Errorf("%s is a key of type %s, which %s does not carry", key.Name, key.TypeName(), t.Datatype)
		case key.Type == registry.StringSet && len(t.Columns) > 1:
			return nil, fmt.Errorf("%s is a set, and stands beside other columns", key.Name)
		case key.Type == registry.StringSet:
			return []*registry.Key{key}, nil
		}
		keys = append(keys, key)
		width += int64(max(1, key.Dims))
	}
	if width != t.Width() {
		return nil, fmt.Errorf("its columns have %d elements for each row, and its shape is %v", width, t.Shape)
	}
	return keys, nil
}

// resolve finds the keys and the parameter of an input.
func (t *tensorInput) resolve(reg *registry.Registry) (err error) {
	types, null := elementTypes[t.Datatype], ""
	if len(t.Columns) > 0 {
		if t.keys, err = keysOf(t.Tensor, reg, types); err != nil {
			return err
		}
		for _, key := range t.keys {
			t.list = t.list || key.Type == registry.StringSet
			if key.Nullable {
				null = key.Name
			}
		}
	}
	if t.Param != "" {
		var ok bool
		t.param, ok = reg.ParamByName(t.Param)
		width := int64(1)
		switch {
		case !ok && t.Param == userParam && t.Datatype == "INT64" && reg.User().TextIDs():
			return fmt.Errorf("%s is a text, which INT64 does not carry", userParam)
		case !ok && t.Param == userParam && (t.Datatype == "BYTES" || t.Datatype == "INT64"):
		case !ok:
			return fmt.Errorf("there is no parameter %s in the registry", task.Quote(t.Param))
		case !slices.Contains(types, t.param.Type):
			return fmt.Errorf("%s is a parameter of type %s, which %s does not carry", t.Param, t.param.TypeName(), t.Datatype)
		case t.param.Type == registry.IntList, t.param.Type == registry.FloatList, t.param.Type == registry.StringList:
			t.list, width = true, t.Width()
		default:
			if width = int64(max(1, t.param.Dims)); t.param.Default == nil {
				null = t.Param
			}
		}
		if width != t.Width() {
			return fmt.Errorf("%s has %d elements, and the shape is %v", t.Param, width, t.Shape)
		}
	}
	if null != "" && !t.list && !t.Float() && t.Missing == nil && !t.masked {
		return fmt.Errorf("%s may have no value, and %s has nothing that says so: give the input a value for missing, or an input with mask_of", null, t.Datatype)
	}
	return nil
}

func (d *tensors) most() (int64, string) { return 0, "" }

func (d *tensors) reads() (keys []registry.KeyID) {
	for i := range d.inputs {
		for _, key := range d.inputs[i].keys {
			if key.ID != registry.IDKey && !slices.Contains(keys, key.ID) {
				keys = append(keys, key.ID)
			}
		}
	}
	return keys
}

// Rounds returns the datatype of floats in which the service gets a column, if it gets it in one; "": it does not, or as it is.
// The log of served rows writes what the service got.
func (r *remoteNode) Rounds(id registry.KeyID) (datatype string) {
	d, ok := r.dialect.(*tensors)
	if !ok {
		return ""
	}
	for i := range d.inputs {
		t := &d.inputs[i]
		if slices.ContainsFunc(t.keys, func(k *registry.Key) bool { return k.ID == id }) {
			if !t.Float() || datatype != "" && datatype != t.Datatype {
				return ""
			}
			datatype = t.Datatype
		}
	}
	return datatype
}

// RefusesTextIDs says why rows whose ids are texts cannot be sent; "": they can. Loading a plan asks.
func (r *remoteNode) RefusesTextIDs() string {
	if d, ok := r.dialect.(*tensors); ok {
		for i := range d.inputs {
			t := &d.inputs[i]
			if t.Datatype != "BYTES" && slices.ContainsFunc(t.keys, func(k *registry.Key) bool { return k.ID == registry.IDKey }) {
				return fmt.Sprintf("input %s of endpoint %s has the id as %s: only BYTES carries a text", t.Name, r.node.Endpoint.Name, t.Datatype)
			}
		}
	}
	return ""
}

// tensorRun is one request. Only the exchange uses it.
type tensorRun struct {
	*tensors
	c       *task.Ctx
	binary  bool
	rows    []int          // those that are sent, by their place among the active ones
	reasons map[int]string // why the others are not
	items   []inference.Value
}

// ask implements dialect. Rows with a value that their tensor cannot carry are left out, and have no value then.
func (d *tensors) ask(c *task.Ctx) (answer answerColumns, err error) {
	run := &tensorRun{tensors: d, c: c, reasons: make(map[int]string)}
	for i := range c.Inputs[0].Len() {
		run.rows = append(run.rows, i)
	}
	x := &remote.Exchange{Wants: inference.BinaryHeader}
	x.Request = func(dst []byte) ([]byte, error) {
		known := inference.KnownOf(x.Known)
		run.binary = known.Binary
		parts, err := run.parts()
		if err != nil {
			return nil, err
		}
		var names []string
		for _, t := range d.outputs {
			names = append(names, t.Name)
		}
		x.Asked = func() []byte {
			asked, _ := inference.AppendRequest(nil, known, 0, parts, names)
			return asked
		}
		dst, x.Header = inference.AppendRequest(dst, known, x.Left, parts, names)
		return dst, nil
	}
	x.Answer = func(body []byte) error {
		most := int64(0) // elements of an output
		for _, t := range d.outputs {
			most = max(most, int64(len(run.rows))*t.Width())
		}
		got, err := inference.ReadAnswer(x.Got, body, most)
		if err != nil {
			return task.Malformedf("%w", err)
		}
		switch _, _, pinned := c.Node.Endpoint.Service.ModelPaths(); {
		case got.ModelVersion == "":
		case pinned == "":
			x.Version = errtext.Name(got.ModelVersion)
		case pinned != got.ModelVersion:
			return task.Malformedf("version %s of the model has answered, in place of version %s", errtext.Quote(got.ModelVersion), errtext.Quote(pinned))
		}
		answer, err = run.read(got)
		return err
	}
	err = c.Remote(c.Node.Endpoint).Do(x)
	return answer, err
}

// parts makes the tensors of the rows, without the rows that cannot be sent.
func (r *tensorRun) parts() (parts []inference.Part, err error) {
	for {
		parts = parts[:0]
		left, size := len(r.reasons), 0
		for i := range r.inputs {
			part, err := r.part(&r.inputs[i], size)
			if err != nil {
				return nil, err
			}
			size += len(part.Elements)
			parts = append(parts, part)
		}
		if len(r.reasons) == left {
			return parts, nil
		}
		r.rows = slices.DeleteFunc(r.rows, func(i int) bool { return r.reasons[i] != "" })
		if len(r.rows) == 0 {
			return nil, task.Invalidf("no row can be sent: %s", r.reasons[0])
		}
	}
}

// part makes a tensor of the rows, behind others of so many bytes. It notes the rows that cannot be sent.
func (r *tensorRun) part(t *tensorInput, size int) (p inference.Part, err error) {
	source, once := t, []int{-1}
	if t.of != nil {
		source = t.of
	}
	rows := r.rows
	if t.Once() {
		rows = once
	}
	width := int(source.Width())
	if width < 0 { // as long as the longest list, and not empty, which some servers refuse
		width = 1
		for n, i := range rows {
			if n > 0 && source.Param != "" {
				break // It has the same elements for each row.
			}
			r.items = r.appendItems(r.items[:0], source, i)
			width = max(width, len(r.items))
		}
	}
	p = inference.Part{Name: t.Name, Datatype: t.Datatype, Shape: slices.Clone(t.Shape)}
	p.Shape[0] = int64(len(rows))
	if len(p.Shape) > 1 && t.LengthsOf == "" {
		p.Shape[1] = int64(width)
	}
	for n, i := range rows {
		if n%remoteBlock == 0 && r.c.Cancelled() {
			return p, task.ErrCancelled
		}
		if most := r.node.node.Endpoint.Service.MaxRequestBytes; size+len(p.Elements) > most {
			return p, remote.TooLarge(most)
		}
		if n == 0 || source.Param == "" {
			r.items = r.appendItems(r.items[:0], source, i)
		}
		items := r.items
		if over := len(items) - width; over > 0 && source.PadLeft {
			items = items[over:]
		}
		items = items[:min(len(items), width)]
		if t.LengthsOf != "" {
			r.add(&p, t, i, inference.Value{Kind: inference.Int, Int: int64(len(items))})
			continue
		}
		padding := 0
		if source.PadLeft {
			padding = width - len(items)
		}
		for at := range width {
			v, isPadding := inference.Value{}, at < padding || at >= padding+len(items)
			if !isPadding {
				v = items[at-padding]
			}
			switch {
			case t.MaskOf != "":
				v = inference.OfBool(v.Kind != inference.None)
			case v.Kind == inference.None && t.Missing != nil:
				v = inference.ValueOf(t.Missing)
			case v.Kind == inference.None && (isPadding || t.masked):
				v = zeroOf(t.Datatype)
			}
			r.add(&p, t, i, v)
		}
	}
	return p, err
}

// add appends an element of row i, or notes that the row cannot be sent.
func (r *tensorRun) add(p *inference.Part, t *tensorInput, i int, v inference.Value) {
	if !r.binary && len(p.Elements) > 0 {
		p.Elements = append(p.Elements, ',')
	}
	var ok bool
	if p.Elements, ok = inference.AppendElement(p.Elements, t.Datatype, r.binary, v); ok {
		return
	}
	why := fmt.Sprintf("input %s has a value that %s cannot carry", t.Name, t.Datatype)
	if v.Kind == inference.None {
		why = fmt.Sprintf("input %s has a null, and a server without binary_tensor_data gets no NaN: give the input a value for missing", t.Name)
	}
	if i >= 0 {
		r.reasons[i] = why
		return
	}
	for _, row := range r.rows { // It holds for all rows.
		r.reasons[row] = why
	}
}

// zeroOf returns the value that stands where there is none.
func zeroOf(datatype string) inference.Value {
	switch datatype {
	case "BOOL":
		return inference.OfBool(false)
	case "BYTES":
		return inference.Value{Kind: inference.Text}
	case "FP64", "FP32", "FP16":
		return inference.Value{Kind: inference.Num}
	}
	return inference.Value{Kind: inference.Int}
}

// appendItems appends the elements of a row of an input, without padding. Nulls are no values.
func (r *tensorRun) appendItems(dst []inference.Value, t *tensorInput, i int) []inference.Value {
	if t.Param != "" {
		return r.appendParam(dst, t)
	}
	in := r.c.Inputs[0]
	row := int(in.Row(i))
	for _, key := range t.keys {
		var v any
		switch column := in.Batch.Column(key.ID).(type) {
		case nil:
			if key.ID == registry.IDKey {
				if t.Datatype == "BYTES" {
					v = r.c.IDText(in.ID(i))
				} else { // see RefusesTextIDs
					v = in.ID(i)
				}
			}
		case *rowset.FloatColumn:
			if f, ok := column.Value(row); ok {
				dst = append(dst, inference.Value{Kind: inference.Num, Num: f})
				continue
			}
		case *rowset.VectorColumn:
			numbers, _ := column.Value(row)
			dst = appendVectorItems(dst, numbers, key.Dims)
			continue
		case *rowset.SetColumn:
			texts, _ := column.AppendValues(nil, row)
			for _, text := range texts {
				dst = append(dst, inference.ValueOf(text))
			}
			continue
		default:
			v = column.Any(row)
		}
		switch {
		case key.Type == registry.StringSet:
		case key.Type == registry.Vector:
			dst = appendVectorItems(dst, nil, key.Dims)
		default:
			dst = append(dst, inference.ValueOf(v))
		}
	}
	return dst
}

// appendParam appends the elements of a parameter. Without a value a list is empty.
func (r *tensorRun) appendParam(dst []inference.Value, t *tensorInput) []inference.Value {
	params := r.c.Params
	var v any
	var ok bool
	switch p := t.param; {
	case p == nil && t.Datatype == "BYTES":
		v, ok = r.c.UserIDText(), true
	case p == nil:
		v, ok = r.c.UserID, params.User() == ""
	case p.Type == registry.Int:
		v, ok = params.Int(p.ID)
	case p.Type == registry.Float:
		v, ok = params.Float(p.ID)
	case p.Type == registry.Bool:
		v, ok = params.Bool(p.ID)
	case p.Type == registry.String:
		v, ok = params.String(p.ID)
	case p.Type == registry.Vector:
		numbers, _ := params.Vector(p.ID)
		return appendVectorItems(dst, numbers, p.Dims)
	case p.Type == registry.IntList:
		list, _ := params.IntList(p.ID)
		return appendItems(dst, list)
	case p.Type == registry.StringList:
		list, _ := params.StringList(p.ID)
		return appendItems(dst, list)
	case p.Type == registry.FloatList:
		list, _ := params.FloatList(p.ID)
		for _, f := range list {
			if v := (inference.Value{Kind: inference.Num, Num: f}); f == f {
				dst = append(dst, v)
			} else {
				dst = append(dst, inference.Value{})
			}
		}
		return dst
	}
	if !ok {
		v = nil
	}
	return append(dst, inference.ValueOf(v))
}

func appendItems[T any](dst []inference.Value, list []T) []inference.Value {
	for _, v := range list {
		dst = append(dst, inference.ValueOf(v))
	}
	return dst
}

// appendVectorItems appends the numbers of a vector, or as many nulls.
func appendVectorItems(dst []inference.Value, numbers []float32, dims int) []inference.Value {
	for i := range dims {
		v := inference.Value{}
		if numbers != nil {
			v = inference.Value{Kind: inference.Num, Num: float64(numbers[i])}
		}
		dst = append(dst, v)
	}
	return dst
}

// read makes the columns of an answer. Each element goes to the row that was sent in its place.
func (r *tensorRun) read(got *inference.Answer) (answerColumns, error) {
	outputs := make([]*inference.Output, len(r.outputs))
	for i, t := range r.outputs {
		o, ok := got.Output(t.Name)
		n := int64(len(r.rows))
		switch {
		case !ok:
			return nil, task.Malformedf("output %s is missing", task.Quote(t.Name))
		case o.Datatype != t.Datatype:
			return nil, task.Malformedf("output %s has the datatype %s, must be %s", task.Quote(t.Name), task.Quote(o.Datatype), t.Datatype)
		case !slices.Equal(o.Shape, []int64{n, t.Width()}) && (t.Width() != 1 || !slices.Equal(o.Shape, []int64{n})):
			return nil, task.Malformedf("output %s has the shape %v, must be %v", task.Quote(t.Name), o.Shape, []int64{n, t.Width()})
		}
		outputs[i] = o
	}
	in := r.c.Inputs[0]
	answer := r.node.builders(in.Len())
	for j := range answer {
		b, place, sent := &answer[j], r.places[j], 0
		b.read, b.values = true, in.Len()
		width := int(r.outputs[place.output].Width())
		for i := range in.Len() {
			var value any
			shown := r.reasons[i]
			if sent < len(r.rows) && r.rows[sent] == i {
				value = elementsAt(outputs[place.output].Elements[sent*width+place.at:], b.key)
				sent++
				shown = fmt.Sprint(value)
			}
			if err := b.appendValue(value, shown); err != nil {
				return nil, err
			}
		}
	}
	return answer, answer.check(in.Len())
}

// elementsAt returns the value of a column that begins with these elements; nil: it is none.
func elementsAt(elements []any, key *registry.Key) any {
	if key.Type != registry.Vector {
		return elements[0]
	}
	vector := make([]float32, key.Dims)
	for i := range vector {
		f, ok := elements[i].(float64)
		if !ok || !isFinite(f) {
			return nil
		}
		vector[i] = float32(f)
	}
	return vector
}
