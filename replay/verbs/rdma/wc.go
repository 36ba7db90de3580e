//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
// static uint32_t rc_invalidated(struct ibv_wc *wc) { return wc->invalidated_rkey; }
import "C"

// invalidated returns the handle that a Send has invalidated, a member of a union.
func invalidated(w *C.struct_ibv_wc) uint32 { return uint32(C.rc_invalidated(w)) }
