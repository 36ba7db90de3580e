// Package heap keeps the least element of a list in front, like container/heap, for lists of any type.
package heap

// Push adds an element.
func Push[T any](list []T, x T, less func(a, b T) bool) []T {
	list = append(list, x)
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if !less(list[i], list[up]) {
			break
		}
		list[i], list[up] = list[up], list[i]
		i = up
	}
	return list
}

// Pop removes the first element.
func Pop[T any](list []T, less func(a, b T) bool) (first T, rest []T) {
	var none T
	last := len(list) - 1
	first, list[0], list[last] = list[0], list[last], none
	Fix(list[:last], less)
	return first, list[:last]
}

// Fix moves the first element, which has changed, to its place.
func Fix[T any](list []T, less func(a, b T) bool) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(list) {
			return
		}
		if child+1 < len(list) && less(list[child+1], list[child]) {
			child++
		}
		if !less(list[child], list[i]) {
			return
		}
		list[i], list[child] = list[child], list[i]
		i = child
	}
}
