package schedule

// agenda orders entries by the time at which they are due.
type agenda []*Entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	switch {
	case a[i].due != a[j].due:
		return a[i].due < a[j].due
	case a[i].Op.ID != a[j].Op.ID:
		return a[i].Op.ID < a[j].Op.ID
	}
	return a[i].Clone < a[j].Clone
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(*Entry)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	n := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return n
}
