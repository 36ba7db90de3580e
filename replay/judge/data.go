package judge

import (
	"bytes"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// data compares the bytes that were read.
func (j *Judge) data(v *verdict.Judgement, r *Reply) {
	x := r.Op.Expect
	if readsPlus(r.Op) {
		j.plus(v, r)
		return
	}
	if len(x.Data) == 0 {
		return
	}
	have := &j.cmp.have
	if len(have.nodes) == 0 {
		have.fill(r.Result) // there were no fields to compare
	}
	for i, d := range have.data[:min(len(have.data), len(x.Data))] {
		if why, how := j.piece(r, &x.Data[i], d); why.Code != verdict.None {
			v.Worsen(how, why)
		}
	}
}

// piece compares one piece of data with the captured one, and with the bytes that this run has
// written there.
func (j *Judge) piece(r *Reply, want *plan.Result, d xdr.Data) (verdict.Reason, verdict.Verdict) {
	b := r.Data.Bytes(d)
	if uint32(len(b)) != d.Length {
		return verdict.Reason{Code: verdict.DataShort, N: uint64(len(b)), M: uint64(d.Length)}, verdict.Different
	}
	if want.Text != nil {
		if d.Length == want.Length && !bytes.Equal(b, want.Text) { // of the length a field has told
			from := 0 // the part that differs is shown
			for len(b) > shownText && b[from] == want.Text[from] {
				from++
			}
			return verdict.Reason{Code: verdict.TextDiffers, Now: string(clip(b[from:])), Was: string(clip(want.Text[from:]))}, verdict.Different
		}
		return verdict.Reason{}, verdict.Same
	}
	object := objectOf(r.Op, want.At)
	l := j.history(r.Clone).expected
	captured := d.Length == want.Length && want.Length > 0 && j.load.Tables.Header.Payload == plan.Captured
	if captured && want.Hash != "" && r.Data.Hash(d, b) == want.Hash {
		l.Seen(object, want.Offset, uint64(want.Length))
		return verdict.Reason{}, verdict.Same
	}
	if why, is := j.twofold(object); is {
		switch {
		case !captured: // of the length a field has told
			return verdict.Reason{}, verdict.Same
		case want.Hash == "":
			return verdict.Reason{Code: verdict.DataNotCaptured}, verdict.Equivalent
		}
		return why, verdict.Explained
	}
	either := func(from, to uint64) bool { return j.meanwhile(l, r.Op, object, from, to) }
	if at, code := l.Compare(object, want.Offset, b, either); code != verdict.None {
		return verdict.Reason{Code: code, N: at}, verdict.Different
	}
	if end := want.Offset + uint64(d.Length); d.Length < want.Length && ended(r.Result, want.At) && l.Holds(object, end) && !either(end, forever) {
		return verdict.Reason{Code: verdict.FileShort, N: end}, verdict.Different
	}
	switch {
	case !captured: // of the length a field has told
		return verdict.Reason{}, verdict.Same
	case want.Hash == "":
		return verdict.Reason{Code: verdict.DataNotCaptured}, verdict.Equivalent
	case l.MadeUp(object, want.Offset, want.Offset+uint64(d.Length)):
		// They are those that this run wrote.
		return verdict.Reason{Code: verdict.Planned, Detail: "the capture lacks bytes that were written there: they were made up"}, verdict.Explained
	}
	return verdict.Reason{Code: verdict.DataDiffer, N: uint64(want.Length), M: want.Offset}, verdict.Different
}

// ended reports whether a READ says that it has reached the end of the file.
func ended(res xdr.Message, at int) bool {
	switch m := res.(type) {
	case *nfs3.READ3res:
		return m.Resok.Eof
	case *nfs4.CompoundRes:
		if at >= 0 && at < len(m.Ops) {
			if r, ok := m.Ops[at].Body.(*nfs4.READ4res); ok {
				return r.Resok4.Eof
			}
		}
	}
	return false
}

func clip(b []byte) []byte { return b[:min(len(b), shownText)] }

// shownText is how many bytes of a text are shown.
const shownText = 64

// chunks compares how much of each Write chunk the reply used.
func (j *Judge) chunks(v *verdict.Judgement, r *Reply) {
	l := r.Op.Layout
	if !r.LaidOut || l == nil || l.UsedWrites == nil {
		return
	}
	for i, used := range l.UsedWrites {
		var now uint32
		if i < len(r.Chunks) {
			now = r.Chunks[i]
		}
		if now != used && !j.follows(r, i, now, used) {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.ChunkDiffers, N: uint64(i),
				Now: strconv.FormatUint(uint64(now), 10), Was: strconv.FormatUint(uint64(used), 10)})
		}
	}
}

// follows reports whether a chunk was used for more or less only because its data are longer or shorter: their length is a field, which
// is compared, and explained, on its own.
func (j *Judge) follows(r *Reply, i int, now, used uint32) bool {
	have, want := &j.cmp.have, r.Op.Expect.Data
	if len(have.nodes) == 0 {
		have.fill(r.Result)
	}
	return i < len(want) && i < len(have.data) && want[i].Length == used && have.data[i].Length == now
}
