# The rooms that can be left out (HEED_ROOMS): of each its sources, by how their paths begin, the suites that test it alone, and the
# rooms that it needs. Nothing outside of a room includes it: what is in it declares itself (autograd/registry.hpp).
# Included by the project's CMakeLists.txt.

set(ROOMS recurrent captioning translation studies judge claims suites bench)

set(SOURCES_OF_recurrent nn/models/recurrent/ experiments/commands/list_cells experiments/metric/probe/recurrence)
set(SUITES_OF_recurrent recurrence_probe recurrent recurrent_lm recurrent_seq2seq)

set(SOURCES_OF_captioning nn/models/captioning/ experiments/data/pictures/ experiments/commands/inspect_picture experiments/report/picture_figure)
set(SUITES_OF_captioning captioner inspect_picture pictures)
set(NEEDS_OF_captioning recurrent)

set(SOURCES_OF_translation nn/models/transformer experiments/data/pairs/ experiments/data/parallel
  experiments/commands/translate. experiments/commands/list_pairs experiments/report/alignment_figure tests/nn/small_transformer)
set(SUITES_OF_translation beam decode evaluation_folder inspect_source malformed_parallel metric_kinds pairs parallel_text transformer translate)

set(SOURCES_OF_studies experiments/study/)
set(SUITES_OF_studies agreement contraction depth interrupted_study scaled_arms softmax_length study)

set(SOURCES_OF_judge experiments/judge/)
set(SUITES_OF_judge judge runs_table)

set(SOURCES_OF_claims experiments/claims/)
set(SUITES_OF_claims claims)

set(SOURCES_OF_suites experiments/suite/)
set(SUITES_OF_suites suite)

set(SOURCES_OF_bench experiments/bench/ tests/benchmarks/)
set(SUITES_OF_bench bench)

set(HEED_ROOMS all CACHE STRING "Of the rooms that can be left out (experiments/rooms.cmake) those that are in it; all; empty: none of them")
set(CHOSEN ${HEED_ROOMS})
if(CHOSEN STREQUAL all)
  set(CHOSEN ${ROOMS})
endif()
set(ROOMS_LEFT_OUT ${ROOMS})
foreach(room ${CHOSEN})
  if(NOT room IN_LIST ROOMS)
    list(JOIN ROOMS ", " ROOMS)
    message(FATAL_ERROR "HEED_ROOMS: there is no room '${room}' that can be left out; there are ${ROOMS}")
  endif()
  foreach(other ${NEEDS_OF_${room}})
    if(NOT other IN_LIST CHOSEN)
      message(FATAL_ERROR "HEED_ROOMS: ${room} needs ${other}; name both, or neither")
    endif()
  endforeach()
  list(REMOVE_ITEM ROOMS_LEFT_OUT ${room})
endforeach()
set(SUITES_LEFT_OUT "")
foreach(room ${ROOMS_LEFT_OUT})
  list(APPEND SUITES_LEFT_OUT ${SUITES_OF_${room}})
endforeach()

# Sets a variable to the room that a file is in, of those that can be left out, or to nothing.
function(room_of file variable)
  set(${variable} "" PARENT_SCOPE)
  foreach(room ${ROOMS})
    foreach(path ${SOURCES_OF_${room}})
      string(FIND ${file} ${PROJECT_SOURCE_DIR}/${path} place)
      if(place EQUAL 0)
        set(${variable} ${room} PARENT_SCOPE)
      endif()
    endforeach()
  endforeach()
endfunction()

# Takes what is in rooms that are left out from a list of files.
function(leave_out_rooms files)
  foreach(file ${${files}})
    room_of(${file} room)
    if(room AND room IN_LIST ROOMS_LEFT_OUT)
      list(REMOVE_ITEM ${files} ${file})
    endif()
  endforeach()
  set(${files} ${${files}} PARENT_SCOPE)
endfunction()
