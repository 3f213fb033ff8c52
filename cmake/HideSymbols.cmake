# cmake -DLINKER= -DOBJCOPY= -DARCHIVER= -DINPUT=lib.a -DSYMBOLS=list.txt -DOUTPUT=out.a -P HideSymbols.cmake

cmake_minimum_required(VERSION 3.16)

foreach(needed LINKER OBJCOPY ARCHIVER INPUT SYMBOLS OUTPUT)
  if(NOT ${needed})
    message(FATAL_ERROR "HideSymbols needs -D${needed}=")
  endif()
endforeach()

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGV}")
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

get_filename_component(folder "${OUTPUT}" DIRECTORY)
get_filename_component(name "${OUTPUT}" NAME_WE)
set(object "${folder}/${name}.o")
file(MAKE_DIRECTORY "${folder}")
file(REMOVE "${OUTPUT}")

# COMDAT groups are dissolved: a group that another archive also has would be dropped as a duplicate, and with it
# code that is local to this object by then.
step("${LINKER}" -r --force-group-allocation -o "${object}" --whole-archive "${INPUT}")
# Bitcode would go stale, and a linker that knows it would look at it.
step("${OBJCOPY}" --remove-section=.llvmbc --remove-section=.llvmcmd "--keep-global-symbols=${SYMBOLS}" "${object}")
step("${ARCHIVER}" crs "${OUTPUT}" "${object}")
file(REMOVE "${object}")
