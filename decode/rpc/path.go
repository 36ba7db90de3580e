package rpc

// AppendPath appends what Path returns. It does not allocate.
func (v *View) AppendPath(dst []byte) []byte {
	f := v.File()
	if f == nil || v.Names == nil {
		return dst
	}
	start := len(dst)
	dst = v.Names.AppendPath(dst, f.Handle)
	if f.Name == nil {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, '/')
	}
	return append(dst, f.Name...)
}

// AppendPath appends what Path returns. It does not allocate.
func (n *Names) AppendPath(dst, handle []byte) []byte {
	e, ok := n.byHandle[string(handle)]
	if !ok {
		return dst
	}
	var parts [maxDepth + 1]string
	count := 0
	for {
		parts[count] = e.name
		count++
		if e, ok = n.byHandle[e.parent]; !ok || count == len(parts) {
			break
		}
	}
	for i := count - 1; i >= 0; i-- {
		dst = append(dst, parts[i]...)
		if i > 0 {
			dst = append(dst, '/')
		}
	}
	return dst
}
