// Package prepare finds the directory on the target that stands for the captured base,
// makes the files in it that the workload expects (make.go, content.go), or finds
// those that were made earlier (place.go), and tells each Clone their handles.
package prepare
