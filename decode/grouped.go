package decode

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// grouped is a batch on its way through the pipeline.
type grouped struct {
	*load
	n     uint64 // batches before it
	err   error
	parts []part // by worker

	first uint64 // number of its first packet
	last  bool   // there are no packets: everything is ended
	end   rdma.Ref
	left  int               // workers that have not done their parts
	used  [maxGroups]int    // bytes that a group holds, with what is on its way
	marks [maxGroups]uint64 // first packet of its oldest transaction that has not ended
}

// load is what a batch needs until it is tracked. The one that was used last is used again first: it is in the cache.
type load struct {
	batch   capture.Batch
	groups  []uint16           // of the packets, from 1; 0: none
	packets [maxGroups][]int32 // by group, in the order of the capture
	placed  []placement        // of the packets; empty if none has one
}

// part is what one worker has found in a batch.
type part struct {
	endings []ending
	events  []event
}

// settled is what groups get back of a batch, and how much they may hold then. Both depend on the capture alone, since it is a fixed number of
// batches later.
type settled struct {
	caps [maxGroups]int // bytes; 0: as before
	back [][]ending     // transactions that were consumed, by worker
}
