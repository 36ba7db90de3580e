package judge

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
)

// data compares what was read.
func (j *Judge) data(v *verdict.Judgement, r *Reply) {
	x := r.Op.Expect
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

// piece compares one piece of data with the captured one.
func (j *Judge) piece(r *Reply, want *plan.Result, d xdr.Data) (verdict.Reason, verdict.Verdict) {
	b := r.Data.Bytes(d)
	if uint32(len(b)) != d.Length {
		return verdict.Reason{Code: verdict.DataShort, N: uint64(len(b)), M: uint64(d.Length)}, verdict.Different
	}
	switch {
	case d.Length != want.Length: // a field has said so
	case want.Text != nil:
		if !bytes.Equal(b, want.Text) {
			return verdict.Reason{Code: verdict.TextDiffers, Now: string(clip(b)), Was: string(clip(want.Text))}, verdict.Different
		}
	case want.Length == 0:
	case j.load.Tables.Header.Payload == plan.Captured:
		if want.Hash == "" {
			return verdict.Reason{Code: verdict.DataNotCaptured}, verdict.Equivalent
		}
		if r.Data.Hash(d, b) != want.Hash {
			return verdict.Reason{Code: verdict.DataDiffer, N: uint64(want.Length), M: want.Offset}, verdict.Different
		}
	default:
		if why := j.madeUp(r, b, objectOf(r.Op, want.At), want.Offset); why.Code != verdict.None {
			return why, verdict.Different
		}
	}
	return verdict.Reason{}, verdict.Same
}

func clip(b []byte) []byte { return b[:min(len(b), 64)] }

// nonZero is where the first byte stands that is not 0; -1 if there is none.
func nonZero(b []byte) int {
	for i := 0; i < len(b); i++ {
		if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0 {
			i += 7
		} else if b[i] != 0 {
			return i
		}
	}
	return -1
}

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
		if now != used {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.ChunkDiffers, N: uint64(i),
				Now: strconv.FormatUint(uint64(now), 10), Was: strconv.FormatUint(uint64(used), 10)})
		}
	}
}
